import { json, post, query, request } from "./http";
import type {
  Audit, AuditComparison, AuditRequest, Calibration, CalibrationRequest, Catalogue, DatasetList, Job, JobKind, ModelEntry, ModelList, Plan,
  ScoreRequest, ScoreResponse, Status,
} from "./schemas";

const segment = encodeURIComponent;

export const models = () => json<ModelList>("v1/models");
export const catalogue = () => json<Catalogue>("v1/methods");
export const loadModel = (id: string) => json<ModelEntry>(`v1/models/${segment(id)}/load`, { method: "POST" });
export const unloadModel = (id: string) => json<ModelEntry>(`v1/models/${segment(id)}/unload`, { method: "POST" });
export const score = (body: ScoreRequest, signal?: AbortSignal) => post<ScoreResponse>("v1/score", body, { signal });
export const plan = (body: AuditRequest) => post<Plan>("v1/plans", body);
export const datasets = () => json<DatasetList>("v1/datasets");

/** `submission` names the request, so that sending it again starts nothing twice. */
export const submitAudit = (body: AuditRequest, submission: string) => post<Audit>("v1/audits", body, { headers: { "idempotency-key": submission } });
export const submitCalibration = (body: CalibrationRequest, submission: string) =>
  post<Calibration>("v1/calibrations", body, { headers: { "idempotency-key": submission } });

export interface JobPage {
  jobs: Job[];
  next: string | null;
}

export async function jobs(kind: JobKind, filter: { status?: Status | ""; model?: string; limit?: number; after?: string } = {}): Promise<JobPage> {
  const page = await json<Record<string, unknown>>(`v1/${kind}${query(filter)}`);
  const list = page[kind] ?? Object.values(page).find(Array.isArray) ?? [];
  return { jobs: list as Job[], next: (page.next as string | null | undefined) ?? null };
}

const place = (kind: JobKind, id: string) => `v1/${kind}/${segment(id)}`;

export const job = (kind: JobKind, id: string, signal?: AbortSignal) => json<Job>(place(kind, id), { signal });
export const cancelJob = (kind: JobKind, id: string) => json<Job>(`${place(kind, id)}/cancel`, { method: "POST" });
export const deleteJob = (kind: JobKind, id: string) => request(place(kind, id), { method: "DELETE" });
export const comparison = (a: string, b: string) => json<AuditComparison>(comparisonPath(a, b));
export const comparisonPath = (a: string, b: string) => `v1/audits/${segment(a)}/compare/${segment(b)}`;
export const reportPath = (kind: JobKind, id: string) => `${place(kind, id)}/report`;
export const scoresPath = (id: string) => `${place("audits", id)}/scores`;
export const eventsPath = (kind: JobKind, id: string) => `${place(kind, id)}/events`;

export const SIGNED = "application/vnd.dsse.envelope+json";

export async function download(path: string, accept: string): Promise<Blob> {
  const response = await request(path, { accept });
  return response.blob();
}

export function submissionName(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}
