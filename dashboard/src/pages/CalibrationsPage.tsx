import { useCallback, useMemo, useState } from "preact/hooks";
import { catalogue as getCatalogue, jobs as getJobs, models as getModels, submissionName, submitCalibration } from "../api/calls";
import { type Failure, toFailure } from "../api/failure";
import { type Catalogue, type Dataset, type ModelEntry, type Overflow, isFinal } from "../api/schemas";
import { initialDraft, owner } from "../audit/draft";
import { DatasetChooser } from "../components/DatasetChooser";
import { SelectField, TextField } from "../components/Fields";
import { MethodChooser } from "../components/MethodChooser";
import { Await, FailureNotice } from "../components/Notices";
import { StatusLabel, progressWords } from "../components/Status";
import { useEvery, useLoad } from "../load";
import { count, time } from "../pure/format";
import { methodRequests } from "../pure/methods";
import { go, jobLink } from "../routes";
import { jobName } from "./JobsPage";

export function CalibrationsPage() {
  const list = useLoad(() => getJobs("calibrations", { limit: 100 }), []);
  const known = useLoad(async () => ({ ...(await getModels()), catalogue: await getCatalogue() }), []);
  const { reload } = list;
  useEvery(list.data?.jobs.some((job) => !isFinal(job.status)) ? 2000 : 10_000, true, useCallback(reload, [reload]));
  return (
    <>
      <p>
        A calibration scores texts or works that the model cannot have seen. A text without a label then gets a p-value: its place among them.
        No p-value is below one in their number and one more, so 99 known works allow 0.01.
      </p>
      <Await data={list.data} failure={list.failure}>
        {({ jobs }) => jobs.length === 0 ? <p>There are none yet.</p> : (
          <div class="wide" tabIndex={0} role="region" aria-label="Calibrations">
            <table>
              <thead><tr><th scope="col">Calibration</th><th scope="col">Status</th><th scope="col">Model</th><th scope="col">Texts</th><th scope="col">Progress</th><th scope="col">Submitted</th></tr></thead>
              <tbody>
                {jobs.map((job) => (
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
  const [draft, setDraft] = useState(() => initialDraft(causal));
  const [dataset, setDataset] = useState<Dataset | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);
  const [submission, setSubmission] = useState(submissionName);
  const hasReference = owner(causal, draft.model)?.reference != null;
  const methods = useMemo(() => methodRequests(draft.choice, catalogue, hasReference), [draft.choice, catalogue, hasReference]);
  if (causal.length === 0) return <p>No model that scores texts is configured.</p>;
  const change = (part: Partial<typeof draft>) => {
    setDraft((before) => ({ ...before, ...part }));
    setSubmission(submissionName());
  };
  const start = async () => {
    setBusy(true);
    setFailure(null);
    try {
      const body = { dataset: dataset!.id, model: draft.model, methods: methods.requests, overflow: draft.overflow, ...(draft.name.trim() && { name: draft.name.trim() }) };
      go(jobLink("calibrations", (await submitCalibration(body, submission)).id));
    } catch (error) {
      setFailure(toFailure(error));
    }
    setBusy(false);
  };
  return (
    <>
      <DatasetChooser dataset={dataset} onChoose={(chosen) => {
        setDataset(chosen);
        setSubmission(submissionName());
      }} />
      <div class="row">
        <SelectField label="Model" value={draft.model} onChange={(model) => change({ model })} choices={causal.map(({ id }) => ({ value: id, label: id }))} />
        <SelectField label="Texts beyond the context" value={draft.overflow} onChange={(value) => change({ overflow: value as Overflow })}
          choices={[{ value: "error", label: "exclude" }, { value: "window", label: "read in windows" }, { value: "truncate", label: "cut off" }]} />
        <TextField label="Name" value={draft.name} onInput={(name) => change({ name })} />
      </div>
      <MethodChooser catalogue={catalogue} hasReference={hasReference} choice={draft.choice}
        onChange={(choice) => change({ choice })} />
      {methods.fault && <p class="notice fault" role="status">{methods.fault}</p>}
      <FailureNotice failure={failure} />
      <p class="actions"><button type="button" class="primary" disabled={!dataset || methods.fault !== null || busy} onClick={() => void start()}>Start the calibration</button></p>
    </>
  );
}
