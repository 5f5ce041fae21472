import type { components } from "./openapi";

type Schemas = components["schemas"];

export type Audit = Schemas["Audit"];
export type AuditComparison = Schemas["AuditComparison"];
export type AuditList = Schemas["AuditList"];
export type AuditReport = Schemas["AuditReport"];
export type AuditRequest = Schemas["AuditRequest"];
export type AuditSummary = Schemas["AuditSummary"];
export type Calibration = Schemas["Calibration"];
export type CalibrationList = Schemas["CalibrationList"];
export type CalibrationRequest = Schemas["CalibrationRequest"];
export type Catalogue = Schemas["Catalogue"];
export type Dataset = Schemas["Dataset"];
export type DatasetList = Schemas["DatasetList"];
export type FinetuneList = Schemas["FinetuneList"];
export type MemorizationList = Schemas["MemorizationList"];
export type MethodEntry = Schemas["MethodEntry"];
export type MethodReport = Schemas["MethodReport"];
export type MethodRequest = Schemas["MethodRequest"];
export type ModelEntry = Schemas["ModelEntry"];
export type ModelList = Schemas["ModelList"];
export type Overflow = Schemas["Overflow"];
export type Parameter = Schemas["Parameter"];
export type Plan = Schemas["Plan"];
export type PresetEntry = Schemas["PresetEntry"];
export type Problem = Schemas["Problem"];
export type SampleLine = Schemas["SampleLine"];
export type ScoreRequest = Schemas["ScoreRequest"];
export type ScoreResponse = Schemas["ScoreResponse"];
export type Status = Schemas["Status"];
export type TestList = Schemas["TestList"];
export type TokenDetail = Schemas["TokenDetail"];
export type Unlearning = Schemas["Unlearning"];
export type Verdict = Schemas["Verdict"];

export const JOB_KINDS = ["audits", "calibrations", "tests", "memorization", "finetunes"] as const;
export type JobKind = (typeof JOB_KINDS)[number];

export type Job =
  | Schemas["Audit"]
  | Schemas["AuditSummary"]
  | Schemas["Calibration"]
  | Schemas["Test"]
  | Schemas["TestSummary"]
  | Schemas["Memorization"]
  | Schemas["MemorizationSummary"]
  | Schemas["Finetune"]
  | Schemas["FinetuneSummary"];

export function isFinal(status: Status): boolean {
  return status === "succeeded" || status === "failed" || status === "cancelled";
}
