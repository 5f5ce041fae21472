import { useMemo, useState } from "preact/hooks";
import { catalogue as getCatalogue, jobs as getJobs, models as getModels, plan as makePlan, submitAudit } from "../api/calls";
import type { Catalogue, Job, ModelEntry, Plan } from "../api/schemas";
import { NO_CONTROL, type PlanContent, auditRequest, controlOf, defaultControl, isLabelled, methodNames, moreFields, owner } from "../audit/draft";
import { auditForm, useForm } from "../audit/useForm";
import { AuditCost } from "../components/AuditCost";
import { DatasetChooser } from "../components/DatasetChooser";
import { SelectField } from "../components/Fields";
import { ModelFields } from "../components/ModelFields";
import { Await, FailureNotice, Note } from "../components/Notices";
import { useLoad } from "../load";
import { furtherPasses } from "../pure/cost";
import { time } from "../pure/format";
import { visible } from "../pure/text";
import { go, jobLink } from "../routes";
import { jobName } from "./JobsPage";

export function NewAuditPage() {
  const { data, failure } = useLoad(async (signal) => {
    const calibrations = getJobs("calibrations", { status: "succeeded", limit: 100 }, signal);
    const [{ models }, catalogue, { list }] = await Promise.all([getModels(signal), getCatalogue(signal), calibrations]);
    return { models, catalogue, calibrations: list };
  }, []);
  return <Await data={data} failure={failure}>{(known) => <AuditForm {...known} />}</Await>;
}

function AuditForm({ models, catalogue, calibrations }: { models: ModelEntry[]; catalogue: Catalogue; calibrations: Job[] }) {
  const causal = models.filter((model) => model.kind !== "masked");
  const form = useForm(auditForm, causal, catalogue, calibrations);
  const { draft, dataset, methods, busy, change, act, submissions } = form;
  const [planned, setPlanned] = useState<{ plan: Plan; request: string } | null>(null);
  const more = useMemo(() => moreFields(draft.more), [draft.more]);
  const fault = methods.fault ?? more.fault;
  const request = dataset && !fault ? auditRequest(draft, dataset, methods.requests, more.fields) : null;
  const plan = planned && request && planned.request === JSON.stringify(request) ? planned.plan : null;
  const content = useMemo(() => (planned ? (JSON.parse(planned.plan.content) as PlanContent) : null), [planned]);

  if (causal.length === 0) return <p>No model that scores texts is configured.</p>;
  const fixPlan = () => act(async () => setPlanned({ plan: await makePlan(request!), request: JSON.stringify(request) }));
  const start = () => act(async () => {
    const body = { ...request!, ...(draft.name.trim() && { name: draft.name.trim() }), ...(plan && { plan: plan.id }) };
    const { id } = await submitAudit(body, submissions.nameOf(body));
    auditForm.value = null;
    go(jobLink("audits", id));
  });
  const names = methodNames(methods.requests, catalogue);
  const labels = content?.methods.map(({ label }) => label) ?? [];
  const primaries = [...new Set([...labels, ...names, ...(draft.primary ? [draft.primary] : [])])];
  const others = causal.filter((entry) => entry.id !== draft.model);
  const cost = request && dataset && {
    further: furtherPasses(plan && content ? content.methods : request.methods, catalogue, owner(causal, request.model ?? "")?.reference ?? null),
    control: plan && content ? (content.evidence?.control ?? null) : controlOf(request, dataset, causal),
  };
  return (
    <>
      <section aria-labelledby="texts-title">
        <h2 id="texts-title">1. Texts</h2>
        <DatasetChooser dataset={dataset} onChoose={form.choose} />
        {dataset && !isLabelled(dataset) && !draft.calibration && (
          <Note>Texts without labels are scored, but get a verdict only beside <a href="#/calibrations">known works</a>.</Note>
        )}
      </section>
      <section aria-labelledby="model-title">
        <h2 id="model-title">2. Model and methods</h2>
        <ModelFields form={form} models={causal} catalogue={catalogue} />
      </section>
      <section aria-labelledby="evidence-title">
        <h2 id="evidence-title">3. What the verdict is about</h2>
        <div class="row">
          <SelectField label="Primary method" value={draft.primary} onChange={(primary) => change({ primary })}
            hint="The verdict is about it alone." choices={[{ value: "", label: "as the service decides" }, ...primaries.map((value) => ({ value, label: visible(value) }))]} />
          <SelectField label="Control" value={draft.control} onChange={(value) => change({ control: value })} hint="A model that you take not to have seen the members."
            choices={[
              { value: "", label: ["as the service decides", (!dataset || isLabelled(dataset)) && defaultControl(causal, draft.model)].filter(Boolean).join(": ") },
              { value: NO_CONTROL, label: "none" },
              ...others.map(({ id }) => ({ value: id, label: id })),
            ]} />
          <SelectField label="Known works" value={draft.calibration} onChange={(calibration) => change({ calibration })}
            hint="A calibration by the same model, methods and treatment of long texts."
            choices={[{ value: "", label: "none" }, ...calibrations.filter((job) => job.model === draft.model).map((job) => ({ value: job.id, label: `${jobName(job)}, ${time(job.created_at)}` }))]} />
        </div>
      </section>
      <details>
        <summary>Further settings as JSON</summary>
        <p class="field">
          <label for="more">JSON object</label>
          <textarea id="more" rows={3} value={draft.more} spellcheck={false} onInput={(event) => change({ more: event.currentTarget.value })}
            placeholder='{"metrics": {"fpr_targets": [0.05]}, "stratify": "group", "timeout_seconds": 3600}' />
          <small>Fields of the request, which replace those above.</small>
        </p>
      </details>
      <section aria-labelledby="cost-title">
        <h2 id="cost-title">4. Cost and plan</h2>
        {!dataset ? <Note>Choose texts first.</Note> : cost && <AuditCost dataset={dataset} {...cost} />}
        <p>A plan fixes texts, model, methods, primary method and control before anything is scored. Its digest can be published or noted down; the report names the plan that the audit kept to.</p>
        {plan && content && (
          <div class="answer" role="status">
            <p>Plan <code class="digest" data-plan>{plan.id}</code>, made {time(plan.created)}</p>
            <p>
              {content.methods.length} methods, primary <code>{visible(content.evidence?.primary ?? "none")}</code>, control{" "}
              <code>{content.evidence?.control ?? "none"}</code>{content.level != null && `, level ${content.level}`}
            </p>
            <details><summary>All that it fixes</summary><pre tabIndex={0} role="region" aria-label="Content of the plan">{visible(JSON.stringify(JSON.parse(plan.content), null, 2)).replaceAll("\u23ce", "\n")}</pre></details>
          </div>
        )}
        {fault && <p class="notice fault" role="alert">{fault}</p>}
        {planned && !plan && request && <Note>The settings have changed since the plan was made.</Note>}
        <FailureNotice failure={form.failure} />
        <p class="actions">
          <button type="button" disabled={!request || busy} onClick={() => void fixPlan()}>Fix the plan</button>
          <button type="button" class="primary" disabled={!request || busy} onClick={() => void start()}>Start the audit</button>
        </p>
      </section>
    </>
  );
}
