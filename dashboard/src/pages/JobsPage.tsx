import { useState } from "preact/hooks";
import { jobs as getJobs } from "../api/calls";
import { JOB_KINDS, type Job, type JobKind, type Status, isFinal } from "../api/schemas";
import { CheckField, SelectField } from "../components/Fields";
import { Await } from "../components/Notices";
import { StatusLabel, progressWords } from "../components/Status";
import { usePages } from "../load";
import { time } from "../pure/format";
import { visible } from "../pure/text";
import { compareLink, jobLink, jobsLink } from "../routes";

export const KIND_NAMES: Record<JobKind, string> = {
  audits: "Audits",
  calibrations: "Calibrations",
  tests: "Tests",
  memorization: "Memorization",
  finetunes: "Fine-tunes",
};

const STATES: (Status | "")[] = ["", "queued", "running", "succeeded", "failed", "cancelled"];
const PAGE = 50;

export function JobsPage({ kind }: { kind: JobKind }) {
  const [status, setStatus] = useState<Status | "">("");
  const [marked, setMarked] = useState<string[]>([]);
  const mark = (id: string, on: boolean) => setMarked((before) => (on ? [...before, id].slice(-2) : before.filter((other) => other !== id)));
  const [a, b] = marked;
  return (
    <>
      <nav aria-label="Kinds of jobs">
        <ul>{JOB_KINDS.map((name) => <li key={name}><a href={jobsLink(name)} aria-current={name === kind ? "page" : undefined}>{KIND_NAMES[name]}</a></li>)}</ul>
      </nav>
      <div class="row">
        <SelectField label="Status" value={status} choices={STATES.map((value) => ({ value, label: value || "any" }))} onChange={(value) => setStatus(value as Status | "")} />
        {kind === "audits" && (
          <p class="field">
            {a && b ? <a class="button aligned" href={compareLink(a, b)}>Compare the two</a> : <span class="faint aligned">Mark two audits that have succeeded to compare them.</span>}
          </p>
        )}
      </div>
      <JobList key={status} kind={kind} status={status} marked={marked} onMark={mark} />
    </>
  );
}

interface ListProps {
  kind: JobKind;
  status: Status | "";
  marked: string[];
  onMark(id: string, on: boolean): void;
}

function JobList({ kind, status, marked, onMark }: ListProps) {
  const { data, failure, more, busy } = usePages((after, signal) => getJobs(kind, { status, limit: PAGE, after }, signal), pollJobs);
  return (
    <>
      <Await data={data} failure={failure}>
        {(list) => list.length === 0 ? <p>There are none{status && ` that are ${status}`}. {kind === "audits" && <a href="#/new-audit">New audit</a>}</p> : (
          <div class="wide" tabIndex={0} role="region" aria-label="List of jobs">
            <table>
              <thead>
                <tr>{kind === "audits" && <th scope="col">Compare</th>}<th scope="col">Job</th><th scope="col">Status</th><th scope="col">Model</th><th scope="col">Progress</th><th scope="col">Submitted</th></tr>
              </thead>
              <tbody>
                {list.map((job) => (
                  <tr key={job.id}>
                    {kind === "audits" && (
                      <td><CheckField label={<span class="hidden">Compare {jobName(job)}</span>} checked={marked.includes(job.id)}
                        disabled={job.status !== "succeeded"} onChange={(on) => onMark(job.id, on)} /></td>
                    )}
                    <td class="text-cell"><a href={jobLink(kind, job.id)}>{jobName(job)}</a></td>
                    <td><StatusLabel status={job.status} /></td>
                    <td>{job.model}</td>
                    <td>{job.error ? visible(job.error.title) : progressWords(job.progress)}</td>
                    <td>{time(job.created_at)}</td>
                  </tr>
                ))}
              </tbody>
            </table>
          </div>
        )}
      </Await>
      {more && <p class="actions"><button type="button" disabled={busy} onClick={more}>Older jobs</button>{busy && <span role="status">Loading …</span>}</p>}
    </>
  );
}

/** The pause until jobs are asked for again. */
export function pollJobs(jobs: Job[]): number {
  return jobs.some((job) => !isFinal(job.status)) ? 2000 : 10_000;
}

export function jobName(job: Job): string {
  return "name" in job && job.name ? visible(job.name) : job.id;
}
