import type { AuditRequest, Catalogue, Dataset, Job, MethodRequest, ModelEntry, Overflow } from "../api/schemas";
import { INITIAL_CHOICE, type MethodChoice, isMethods } from "../pure/methods";

/** Choices of the forms of a new audit and of a new calibration. */
export interface Draft {
  name: string;
  model: string;
  overflow: Overflow;
  choice: MethodChoice;
  primary: string;
  /** Empty: as the service decides; `none`: without one. */
  control: string;
  calibration: string;
  /** Further fields of the request, as a JSON object. */
  more: string;
}

export const NO_CONTROL = "none";

export function initialDraft(models: ModelEntry[]): Draft {
  const model = models.find((entry) => entry.default) ?? models[0];
  const names = model?.reference ? ["ref", ...INITIAL_CHOICE.names] : INITIAL_CHOICE.names;
  return { name: "", model: model?.id ?? "", overflow: "error", choice: { ...INITIAL_CHOICE, names }, primary: "", control: "", calibration: "", more: "" };
}

/** The draft without choices that a change of the model, or of what the service has, has made impossible. */
export function possible(draft: Draft, models: ModelEntry[], calibrations: Job[]): Draft {
  const model = owner(models, draft.model) ? draft.model : initialDraft(models).model;
  const control = draft.control === NO_CONTROL || models.some(({ id }) => id === draft.control && id !== model) ? draft.control : "";
  const calibration = calibrations.some((job) => job.id === draft.calibration && job.model === model) ? draft.calibration : "";
  return { ...draft, model, control, calibration };
}

export function auditRequest(draft: Draft, dataset: Dataset, methods: MethodRequest[], more: Partial<AuditRequest>): AuditRequest {
  const request: AuditRequest = { dataset: dataset.id, model: draft.model, methods, overflow: draft.overflow };
  if (draft.primary) request.primary = draft.primary;
  if (draft.control) request.control = draft.control === NO_CONTROL ? null : draft.control;
  if (draft.calibration) request.calibration = draft.calibration;
  return { ...request, ...more };
}

/** The fields of a JSON object, or the fault of the text. */
export function moreFields(text: string): { fields: Partial<AuditRequest>; fault: string | null } {
  if (text.trim() === "") return { fields: {}, fault: null };
  try {
    const fields: unknown = JSON.parse(text);
    if (typeof fields !== "object" || fields === null || Array.isArray(fields)) return { fields: {}, fault: "The further settings are not a JSON object." };
    if ("methods" in fields && fields.methods !== null && !isMethods(fields.methods)) return { fields: {}, fault: "The methods of the further settings are not an array of names and objects." };
    return { fields, fault: null };
  } catch (error) {
    return { fields: {}, fault: `The further settings are not JSON: ${error instanceof Error ? error.message : error}` };
  }
}

/** The model of an id, which may be that of one of its adapters. */
export function owner(models: ModelEntry[], id: string): ModelEntry | undefined {
  return models.find((model) => model.id === id || model.adapters?.some((adapter) => adapter.id === id));
}

export function isLabelled(dataset: Dataset): boolean {
  return dataset.members + dataset.non_members > 0;
}

/** The control of a request: without labels there is none. */
export function controlOf(request: AuditRequest, dataset: Dataset, models: ModelEntry[]): string | null {
  if (!isLabelled(dataset)) return null;
  return request.control === undefined ? defaultControl(models, request.model ?? "") : request.control;
}

/** The control that the service takes where the request names none. */
export function defaultControl(models: ModelEntry[], id: string): string | null {
  const model = owner(models, id);
  if (model && model.id !== id) return model.id;
  return model?.base ?? model?.reference ?? null;
}

export interface PlanContent {
  methods: (Exclude<MethodRequest, string> & { label: string })[];
  evidence?: { primary?: string | null; control?: string | null };
  level?: number;
}

export function methodNames(methods: MethodRequest[], catalogue: Catalogue): string[] {
  const known = new Set<string>(catalogue.methods.map((method) => method.name));
  return [...new Set(methods.map((method) => (typeof method === "string" ? method : (method.name ?? ""))))].filter((name) => known.has(name));
}
