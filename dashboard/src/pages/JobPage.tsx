import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { SIGNED, cancelJob, deleteJob, reportPath, scoresPath } from "../api/calls";
import { type Failure, toFailure } from "../api/failure";
import { renewals } from "../api/key";
import { type Channel, follow } from "../api/follow";
import { type Audit, type Calibration, type Job, type JobKind, isFinal } from "../api/schemas";
import { AuditResults } from "../components/AuditResults";
import { CalibrationFacts } from "../components/CalibrationFacts";
import { DownloadButton } from "../components/DownloadButton";
import { FailureNotice, ProblemText } from "../components/Notices";
import { ReportFrame } from "../components/ReportFrame";
import { ScoresTable } from "../components/ScoresTable";
import { ProgressBar, StatusLabel } from "../components/Status";
import { useObservable } from "../observable";
import { count, digest, plural, short, time } from "../pure/format";
import { go, jobsLink } from "../routes";
import { KIND_NAMES, jobName } from "./JobsPage";

const CHANNELS: Record<Channel, string> = { stream: "followed live", polling: "asked for every few seconds" };

export function JobPage({ kind, id }: { kind: JobKind; id: string }) {
  const [job, setJob] = useState<Job | null>(null);
  const [channel, setChannel] = useState<Channel>("stream");
  const [failure, setFailure] = useState<Failure | null>(null);
  const renewed = useObservable(renewals);
  useEffect(
    () =>
      follow(kind, id, {
        onJob: (next) => {
          setJob(next);
          setFailure(null);
        },
        onProgress: (progress) => setJob((before) => (before ? ({ ...before, progress } as Job) : before)),
        onChannel: setChannel,
        onFailure: (next) => next.status > 0 && setFailure(next),
      }),
    [kind, id, renewed],
  );
  const act = async (action: () => Promise<void>) => {
    try {
      await action();
      setFailure(null);
    } catch (error) {
      setFailure(toFailure(error));
    }
  };
  return (
    <>
      <p><a href={jobsLink(kind)}>{KIND_NAMES[kind]}</a></p>
      <FailureNotice failure={failure} />
      {!job && !failure && <p class="faint" role="status">Loading …</p>}
      {job && (
        <>
          <h2>{jobName(job)}</h2>
          <p><span aria-live="polite"><StatusLabel status={job.status} /></span>{!isFinal(job.status) && <span class="faint"> {CHANNELS[channel]}</span>}</p>
          {!isFinal(job.status) && <ProgressBar progress={job.progress} label={`Progress of ${jobName(job)}`} />}
          <Facts job={job} />
          {!isFinal(job.status) && <ForecastFacts job={job} />}
          {job.error && <div class="notice fault"><ProblemText problem={job.error} /></div>}
          <p class="actions">
            {isFinal(job.status)
              ? <DeleteButton onDelete={() => act(async () => {
                  await deleteJob(kind, id);
                  go(jobsLink(kind));
                })} />
              : <button type="button" onClick={() => act(async () => setJob(await cancelJob(kind, id)))}>Cancel the job</button>}
          </p>
          {job.status === "succeeded" && <Results kind={kind} job={job} />}
        </>
      )}
    </>
  );
}

function Results({ kind, job }: { kind: JobKind; job: Job }) {
  const path = reportPath(kind, job.id);
  const report = kind === "audits" ? ((job as Audit).results ?? null) : null;
  return (
    <>
      {report && <AuditResults report={report} />}
      {kind === "calibrations" && <CalibrationFacts calibration={job as Calibration} />}
      <h2>Report</h2>
      <p class="actions">
        <DownloadButton path={path} accept="text/html" file={`${job.id}.html`} label="Download the page" />
        <DownloadButton path={path} accept="application/json" file={`${job.id}.json`} label="Download the JSON" />
        <DownloadButton path={path} accept={SIGNED} file={`${job.id}.dsse.json`} label="Download the signed report"
          missing="The service has no key to sign with." />
        {kind === "audits" && <DownloadButton path={scoresPath(job.id)} accept="text/csv" file={`${job.id}.csv`} label="Download the scores as CSV" />}
      </p>
      <ReportFrame path={path} title="Report of the job" />
      {report && (
        <>
          <h2>Samples</h2>
          <ScoresTable id={job.id} total={report.samples.total} labels={report.methods.map((method) => method.label)} />
        </>
      )}
    </>
  );
}

function DeleteButton({ onDelete }: { onDelete(): void }) {
  const [asked, setAsked] = useState(false);
  const safe = useRef<HTMLButtonElement>(null);
  const first = useRef(true);
  // The button that was pressed is gone; of those in its place the one that deletes nothing gets the focus.
  useLayoutEffect(() => {
    if (!first.current) safe.current?.focus();
    first.current = false;
  }, [asked]);
  if (!asked) return <button key="ask" ref={safe} type="button" onClick={() => setAsked(true)}>Delete</button>;
  return (
    <>
      <span>The job and its results are deleted for good.</span>
      <button key="delete" type="button" onClick={onDelete}>Delete it</button>
      <button key="keep" ref={safe} type="button" onClick={() => setAsked(false)}>Keep it</button>
    </>
  );
}

function Facts({ job }: { job: Job }) {
  const methods = "methods" in job ? job.methods : null;
  const rows: [string, string][] = [["Id", job.id], ["Model", job.model], ["Submitted", time(job.created_at)]];
  if (job.started_at) rows.push(["Started", time(job.started_at)]);
  if (job.finished_at) rows.push(["Finished", time(job.finished_at)]);
  if (methods) rows.push(["Methods", plural(methods.length, "method")]);
  if (job.owner) rows.push(["Owner", job.owner]);
  return (
    <dl class="facts">
      {rows.map(([name, value]) => <div key={name}><dt>{name}</dt><dd>{value}</dd></div>)}
      {job.dataset && <div><dt>Dataset</dt><dd><code title={job.dataset}>{digest(job.dataset)}</code></dd></div>}
    </dl>
  );
}

function ForecastFacts({ job }: { job: Job }) {
  const forecast = "forecast" in job.progress ? job.progress.forecast : null;
  if (!forecast) return null;
  return (
    <>
      <h3>Forecast</h3>
      <p>
        {plural(forecast.texts, "text")} of {plural(forecast.works, "work")} to score, about {count(forecast.estimated_tokens)} tokens.
        {forecast.smallest_p != null && ` Beside ${plural(forecast.known_works ?? 0, "known work")} no p-value can be below ${short(forecast.smallest_p)}.`}
      </p>
    </>
  );
}
