import { json, post, query, request } from "./http";
import type {
  Audit, AuditComparison, AuditList, AuditRequest, Calibration, CalibrationList, CalibrationRequest, Catalogue, Dataset, DatasetList, FinetuneList, Job,
  JobKind, MemorizationList, ModelEntry, ModelList, Plan, ScoreRequest, ScoreResponse, Status, TestList,
} from "./schemas";

const segment = encodeURIComponent;

export const models = (signal?: AbortSignal) => json<ModelList>("v1/models", { signal });
export const catalogue = (signal?: AbortSignal) => json<Catalogue>("v1/methods", { signal });
export const loadModel = (id: string) => json<ModelEntry>(`v1/models/${segment(id)}/load`, { method: "POST" });
export const unloadModel = (id: string) => json<ModelEntry>(`v1/models/${segment(id)}/unload`, { method: "POST" });
export const score = (body: ScoreRequest, signal?: AbortSignal) => post<ScoreResponse>("v1/score", body, { signal });
export const plan = (body: AuditRequest) => post<Plan>("v1/plans", body);

/** `submission` names the request, so that sending it again starts nothing twice. */
export const submitAudit = (body: AuditRequest, submission: string) => post<Audit>("v1/audits", body, { headers: { "idempotency-key": submission } });
export const submitCalibration = (body: CalibrationRequest, submission: string) =>
  post<Calibration>("v1/calibrations", body, { headers: { "idempotency-key": submission } });

export interface Page<T> {
  list: T[];
  next?: string | null;
}

export async function datasets(after?: string, signal?: AbortSignal): Promise<Page<Dataset>> {
  const { datasets, next } = await json<DatasetList>(`v1/datasets${query({ after })}`, { signal });
  return { list: datasets, next };
}

type JobLists = Partial<AuditList & CalibrationList & TestList & MemorizationList & FinetuneList>;
const LIST_NAMES = {
  audits: "audits", calibrations: "calibrations", tests: "tests", memorization: "memorizations", finetunes: "finetunes",
} as const satisfies Record<JobKind, keyof JobLists>;

export interface JobFilter {
  status?: Status | "";
  limit?: number;
  after?: string;
}

export async function jobs(kind: JobKind, filter: JobFilter = {}, signal?: AbortSignal): Promise<Page<Job>> {
  const answer = await json<JobLists>(`v1/${kind}${query({ ...filter })}`, { signal });
  return { list: answer[LIST_NAMES[kind]] ?? [], next: answer.next };
}

const place = (kind: JobKind, id: string) => `v1/${kind}/${segment(id)}`;

export const job = (kind: JobKind, id: string, signal?: AbortSignal) => json<Job>(place(kind, id), { signal });
export const cancelJob = (kind: JobKind, id: string) => json<Job>(`${place(kind, id)}/cancel`, { method: "POST" });
export const deleteJob = (kind: JobKind, id: string) => request(place(kind, id), { method: "DELETE" });
export const comparison = (path: string, signal?: AbortSignal) => json<AuditComparison>(path, { signal });
export const comparisonPath = (a: string, b: string, question: string) => `v1/audits/${segment(a)}/compare/${segment(b)}${query({ question })}`;
export const reportPath = (kind: JobKind, id: string) => `${place(kind, id)}/report`;
export const scoresPath = (id: string) => `${place("audits", id)}/scores`;
export const eventsPath = (kind: JobKind, id: string) => `${place(kind, id)}/events`;

export const SIGNED = "application/vnd.dsse.envelope+json";

export async function download(path: string, accept: string, signal?: AbortSignal): Promise<Blob> {
  const response = await request(path, { accept, signal });
  return response.blob();
}

/** Names submissions, so that sending the same again starts nothing twice. */
export class Submissions {
  private sent = "";
  private name = "";

  nameOf(body: object): string {
    const content = JSON.stringify(body);
    if (content !== this.sent) this.name = Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
    this.sent = content;
    return this.name;
  }
}
