import { useState } from "preact/hooks";
import { comparison, comparisonPath, jobs as getJobs } from "../api/calls";
import type { AuditComparison, Job, Unlearning } from "../api/schemas";
import { DownloadButton } from "../components/DownloadButton";
import { type Choice, SelectField } from "../components/Fields";
import { Await, Note } from "../components/Notices";
import { ReportFrame } from "../components/ReportFrame";
import { useLoad } from "../load";
import { count, short, time } from "../pure/format";
import { visible } from "../pure/text";
import { compareLink, go, jobLink } from "../routes";
import { jobName } from "./JobsPage";

interface Compared {
  a: string;
  b: string;
  question: string;
}

const QUESTIONS: Choice[] = [
  { value: "", label: "how do they differ?" },
  { value: "retain", label: "has b forgotten what a never saw?" },
];

export function ComparePage({ a, b, question }: Compared) {
  const { data, failure } = useLoad((signal) => getJobs("audits", { status: "succeeded", limit: 500 }, signal), []);
  return (
    <>
      <Await data={data} failure={failure}>{({ list }) => <Chooser key={`${a}/${b}/${question}`} jobs={list} a={a} b={b} question={question} />}</Await>
      {a && b && <Comparison key={`${a}/${b}/${question}`} a={a} b={b} question={question} />}
    </>
  );
}

function Chooser({ jobs, a, b, question }: Compared & { jobs: Job[] }) {
  const [first, setFirst] = useState(a);
  const [second, setSecond] = useState(b);
  const [asked, setAsked] = useState(question);
  const choices = [{ value: "", label: "choose" }, ...jobs.map((job) => ({ value: job.id, label: `${jobName(job)}, ${job.model}, ${time(job.created_at)}` }))];
  for (const id of [a, b]) if (id && !choices.some(({ value }) => value === id)) choices.push({ value: id, label: id });
  if (jobs.length < 2 && !(a && b)) return <p>It takes two audits that have succeeded.</p>;
  return (
    <form onSubmit={(event) => {
      event.preventDefault();
      go(compareLink(first, second, asked));
    }}>
      <div class="row">
        <SelectField label="First audit, a" value={first} choices={choices} onChange={setFirst} />
        <SelectField label="Second audit, b" value={second} choices={choices} onChange={setSecond} />
        <SelectField label="Question" value={asked} choices={QUESTIONS} onChange={setAsked} />
        <p class="field"><button type="submit" class="primary" disabled={!first || !second}>Compare</button></p>
      </div>
    </form>
  );
}

function Comparison({ a, b, question }: Compared) {
  const path = comparisonPath(a, b, question);
  const { data, failure } = useLoad((signal) => comparison(path, signal), [path]);
  return (
    <Await data={data} failure={failure}>
      {(compared) => (
        <>
          <ul>
            <li>a: <a href={jobLink("audits", compared.a.id)}>{compared.a.id}</a>, model <code>{compared.a.model.id}</code></li>
            <li>b: <a href={jobLink("audits", compared.b.id)}>{compared.b.id}</a>, model <code>{compared.b.model.id}</code></li>
          </ul>
          <p>
            {count(compared.samples.paired)} samples are in both, {count(compared.samples.only_a)} in a alone, {count(compared.samples.only_b)} in b alone;{" "}
            {count(compared.samples.label_conflicts)} have another label in the other audit and are left out.
          </p>
          {compared.unlearning && <Forgetting unlearning={compared.unlearning} />}
          <Differences compared={compared} />
          <h2>Report</h2>
          <p class="actions">
            <DownloadButton path={path} accept="text/html" file="comparison.html" label="Download the page" />
            <DownloadButton path={path} accept="application/json" file="comparison.json" label="Download the JSON" />
          </p>
          <ReportFrame path={path} title="Report of the comparison" />
        </>
      )}
    </Await>
  );
}

function Forgetting({ unlearning }: { unlearning: Unlearning }) {
  return (
    <div class="answer">
      {unlearning.methods.map((method) => (
        <details key={method.label} open={unlearning.methods.length === 1}>
          <summary><code>{visible(method.label)}</code>: <code>{method.direction}</code></summary>
          <p data-unlearning>{visible(method.sentence)}</p>
        </details>
      ))}
      <p class="faint">It is assumed that {unlearning.assumptions.join("; ")}.</p>
    </div>
  );
}

function Differences({ compared }: { compared: AuditComparison }) {
  if (compared.methods.length === 0) return <p>The audits have no method of the same label.</p>;
  const labelled = compared.methods.some((method) => method.delta != null);
  const interval = (pair: number[] | null | undefined) => (pair ? `${short(pair[0])} to ${short(pair[1])}` : "\u2013");
  return (
    <>
      <div class="wide" tabIndex={0} role="region" aria-label="Differences by method">
        <table>
          <thead>
            <tr>
              <th scope="col">Method</th><th scope="col" class="number-cell">Scored</th>
              {labelled
                ? <><th scope="col" class="number-cell">AUROC a</th><th scope="col" class="number-cell">AUROC b</th><th scope="col" class="number-cell">b − a</th>
                  <th scope="col" class="number-cell">{compared.bootstrap.confidence == null ? "Interval" : `${100 * compared.bootstrap.confidence} % interval`}</th>
                  <th scope="col" class="number-cell">p-value, unadjusted</th></>
                : <th scope="col" class="number-cell">Mean of b − a</th>}
            </tr>
          </thead>
          <tbody>
            {compared.methods.map((method) => (
              <tr key={method.label}>
                <th scope="row"><code>{visible(method.label)}</code></th>
                <td class="number-cell">{count(method.scored)}</td>
                {labelled
                  ? <><td class="number-cell">{short(method.auroc_a)}</td><td class="number-cell">{short(method.auroc_b)}</td>
                    <td class="number-cell" title={String(method.delta ?? "")}>{short(method.delta)}</td>
                    <td class="number-cell">{interval(method.interval)}</td><td class="number-cell">{short(method.p_value)}</td></>
                  : <td class="number-cell">{short(method.mean_difference)}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <Note>
        {labelled && "Intervals and p-values are DeLong\u2019s for paired scores; no p-value is adjusted for the number of methods. "}
        Numbers are rounded here; the JSON has all digits.
      </Note>
    </>
  );
}
