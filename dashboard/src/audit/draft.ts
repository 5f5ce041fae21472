import type { AuditRequest, Catalogue, Dataset, MethodRequest, ModelEntry, Overflow } from "../api/schemas";
import { INITIAL_CHOICE, type MethodChoice } from "../pure/methods";

/** What the form of a new audit holds. */
export interface Draft {
  name: string;
  model: string;
  overflow: Overflow;
  choice: MethodChoice;
  primary: string;
  /** Empty: as the service decides; `none`: without one. */
  control: string;
  calibration: string;
}

export const NO_CONTROL = "none";

export function initialDraft(models: ModelEntry[]): Draft {
  const model = models.find((entry) => entry.default) ?? models[0];
  const names = model?.reference ? ["ref", ...INITIAL_CHOICE.names] : INITIAL_CHOICE.names;
  return { name: "", model: model?.id ?? "", overflow: "error", choice: { ...INITIAL_CHOICE, names }, primary: "", control: "", calibration: "" };
}

export function auditRequest(draft: Draft, dataset: Dataset, methods: MethodRequest[]): AuditRequest {
  const request: AuditRequest = { dataset: dataset.id, model: draft.model, methods, overflow: draft.overflow };
  if (draft.primary) request.primary = draft.primary;
  if (draft.control) request.control = draft.control === NO_CONTROL ? null : draft.control;
  if (draft.calibration) request.calibration = draft.calibration;
  return request;
}

/** The control that the service takes where the request names none. */
export function defaultControl(model: ModelEntry | undefined): string | null {
  return model?.base ?? model?.reference ?? null;
}

export interface PlanContent {
  methods: { label: string; name: string }[];
  evidence?: { primary?: string | null; control?: string | null };
  level?: number;
}

export function methodNames(methods: MethodRequest[], catalogue: Catalogue): string[] {
  const known = new Set<string>(catalogue.methods.map((method) => method.name));
  return [...new Set(methods.map((method) => (typeof method === "string" ? method : (method.name ?? ""))))].filter((name) => known.has(name));
}
