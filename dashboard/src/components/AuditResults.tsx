import type { AuditReport, MethodReport } from "../api/schemas";
import { count, digest, plural, short } from "../pure/format";
import { visible } from "../pure/text";
import { Note } from "./Notices";

export function AuditResults({ report }: { report: AuditReport }) {
  const { samples, verdict, plan } = report;
  return (
    <>
      {verdict ? (
        <div class="answer">
          <p data-verdict>{visible(verdict.sentence)}</p>
          <p class="faint">State <code>{verdict.state}</code>, reason <code>{verdict.reason}</code>, design <code>{verdict.design}</code></p>
        </div>
      ) : <p>There is no verdict: the texts have no labels, and the audit has no calibration.</p>}
      <p>
        {plural(samples.total, "sample")}
        {samples.members + samples.non_members > 0
          ? `: ${plural(samples.members, "member")}, ${plural(samples.non_members, "non-member")}`
          : " without labels"}, {plural(samples.clusters, "cluster")}.{" "}
        {plan.planned
          ? <>Planned: <code title={plan.id ?? ""}>{digest(plan.id)}</code>.</>
          : "The audit names no plan: methods, primary, control and grouping may have been chosen by their results."}
        {plan.earlier_audits
          ? ` ${plural(plan.earlier_audits, "earlier audit")} of the same texts against this model, as far as the store still holds yours: a hint and no proof.`
          : ""}
      </p>
      {report.warnings.length > 0 && (
        <details>
          <summary>{plural(report.warnings.length, "warning")}</summary>
          <ul>{report.warnings.map((warning, index) => <li key={index}><code>{warning.code}</code> {visible(warning.detail)}</li>)}</ul>
        </details>
      )}
      {samples.exclusions.length > 0 && (
        <details open>
          <summary>Excluded samples</summary>
          <ul>
            {samples.exclusions.map((exclusion, index) => (
              <li key={index}>{plural(exclusion.samples, "sample")}: <code>{exclusion.code}</code>{exclusion.label && <> of <code>{visible(exclusion.label)}</code></>}</li>
            ))}
          </ul>
        </details>
      )}
      {report.works && report.works.length > 0 && <Works report={report} />}
      <h2>Methods</h2>
      <MethodTable methods={report.methods} verdict={verdict != null} />
    </>
  );
}

function MethodTable({ methods, verdict }: { methods: MethodReport[]; verdict: boolean }) {
  const rates = methods.find((method) => method.tpr_at_fpr?.length)?.tpr_at_fpr?.map(({ fpr }) => fpr) ?? [];
  const labelled = methods.some((method) => method.auroc != null);
  const compared = methods.some((method) => method.versus_baseline != null);
  return (
    <>
      <div class="wide" tabIndex={0} role="region" aria-label="Methods of the audit">
        <table>
          <thead>
            <tr>
              <th scope="col">Method</th><th scope="col" class="number-cell">Scored</th>
              {labelled && <><th scope="col" class="number-cell">AUROC</th><th scope="col" class="number-cell">Std. error</th></>}
              {rates.map((rate) => <th key={rate} scope="col" class="number-cell">TPR at FPR {rate}</th>)}
              {compared && <th scope="col" class="number-cell">vs. baseline</th>}
            </tr>
          </thead>
          <tbody>
            {methods.map((method) => (
              <tr key={method.label}>
                <th scope="row"><code>{visible(method.label)}</code></th>
                <td class="number-cell">{count(method.scored)}</td>
                {labelled && <><td class="number-cell" title={String(method.auroc ?? "")}>{short(method.auroc)}</td><td class="number-cell">{short(method.auroc_standard_error)}</td></>}
                {rates.map((rate, index) => <td key={rate} class="number-cell">{short(method.tpr_at_fpr?.[index]?.tpr, 3)}</td>)}
                {compared && <td class="number-cell">{short(method.versus_baseline?.delta)}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {!labelled && (
        <Note>{verdict ? "The methods have no AUROC of their own without labels; that of the verdict is against the known texts." : "Without labels the methods have no AUROC."}</Note>
      )}
      <Note>Numbers are rounded here; the JSON of the report has all digits.</Note>
    </>
  );
}

const WORKS = 200;

function Works({ report }: { report: AuditReport }) {
  const works = report.works ?? [];
  return (
    <>
      <h2>Works</h2>
      <div class="wide" tabIndex={0} role="region" aria-label="Works">
        <table>
          <thead>
            <tr>
              <th scope="col">Work</th><th scope="col" class="number-cell">p-value</th><th scope="col" class="number-cell">Known works above</th>
              <th scope="col" class="number-cell">Mean score</th><th scope="col" class="number-cell">Passages</th><th scope="col">Listed</th>
            </tr>
          </thead>
          <tbody>
            {works.slice(0, WORKS).map((work) => (
              <tr key={String(work.document)}>
                <th scope="row" class="text-cell">{visible(String(work.document))}</th>
                <td class="number-cell">{short(work.p_value)}</td><td class="number-cell">{count(work.known_above)}</td>
                <td class="number-cell">{short(work.score)}</td><td class="number-cell">{count(work.passages)}</td><td>{work.listed ? "yes" : "no"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {works.length > WORKS && <Note>The first {WORKS} of {count(works.length)}; the JSON of the report has all.</Note>}
    </>
  );
}
