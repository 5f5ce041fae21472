import { catalogue as getCatalogue, jobs as getJobs, models as getModels, submitCalibration } from "../api/calls";
import type { Catalogue, ModelEntry } from "../api/schemas";
import { calibrationForm, useForm } from "../audit/useForm";
import { DatasetChooser } from "../components/DatasetChooser";
import { ModelFields } from "../components/ModelFields";
import { Await, FailureNotice } from "../components/Notices";
import { StatusLabel, progressWords } from "../components/Status";
import { useLoad } from "../load";
import { count, time } from "../pure/format";
import { go, jobLink } from "../routes";
import { jobName, pollJobs } from "./JobsPage";

export function CalibrationsPage() {
  const calibrations = useLoad((signal) => getJobs("calibrations", { limit: 100 }, signal), [], (page) => pollJobs(page?.list ?? []));
  const known = useLoad(async (signal) => ({ ...(await getModels(signal)), catalogue: await getCatalogue(signal) }), []);
  return (
    <>
      <p>
        A calibration scores texts or works that you take not to be in the model's training data; nothing here can check that. A text without a
        label then gets a p-value: its place among them. It holds where the known texts differ from those tested in nothing else than that. No
        p-value is below one in their number and one more, so 99 known works allow 0.01.
      </p>
      <Await data={calibrations.data} failure={calibrations.failure}>
        {({ list }) => list.length === 0 ? <p>There are none yet.</p> : (
          <div class="wide" tabIndex={0} role="region" aria-label="Calibrations">
            <table>
              <thead><tr><th scope="col">Calibration</th><th scope="col">Status</th><th scope="col">Model</th><th scope="col">Texts</th><th scope="col">Progress</th><th scope="col">Submitted</th></tr></thead>
              <tbody>
                {list.map((job) => (
                  <tr key={job.id}>
                    <td class="text-cell"><a href={jobLink("calibrations", job.id)}>{jobName(job)}</a></td>
                    <td><StatusLabel status={job.status} /></td>
                    <td>{job.model}</td>
                    <td>{"texts" in job ? count(job.texts) : ""}</td>
                    <td>{progressWords(job.progress)}</td>
                    <td>{time(job.created_at)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Await>
      <h2>New calibration</h2>
      <Await data={known.data} failure={known.failure}>{({ models, catalogue }) => <CalibrationForm models={models} catalogue={catalogue} />}</Await>
    </>
  );
}

function CalibrationForm({ models, catalogue }: { models: ModelEntry[]; catalogue: Catalogue }) {
  const causal = models.filter((model) => model.kind !== "masked");
  const form = useForm(calibrationForm, causal, catalogue);
  const { draft, dataset, methods, busy, act, submissions } = form;
  if (causal.length === 0) return <p>No model that scores texts is configured.</p>;
  const start = () => act(async () => {
    const body = { dataset: dataset!.id, model: draft.model, methods: methods.requests, overflow: draft.overflow, ...(draft.name.trim() && { name: draft.name.trim() }) };
    const { id } = await submitCalibration(body, submissions.nameOf(body));
    calibrationForm.value = null;
    go(jobLink("calibrations", id));
  });
  return (
    <>
      <DatasetChooser dataset={dataset} onChoose={form.choose} />
      <ModelFields form={form} models={causal} catalogue={catalogue} />
      {methods.fault && <p class="notice fault" role="status">{methods.fault}</p>}
      <FailureNotice failure={form.failure} />
      <p class="actions"><button type="button" class="primary" disabled={!dataset || methods.fault !== null || busy} onClick={() => void start()}>Start the calibration</button></p>
    </>
  );
}
