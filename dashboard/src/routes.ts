import { JOB_KINDS, type JobKind } from "./api/schemas";
import { Observable } from "./observable";

export type Route =
  | { page: "models" }
  | { page: "score" }
  | { page: "new-audit" }
  | { page: "jobs"; kind: JobKind }
  | { page: "job"; kind: JobKind; id: string }
  | { page: "compare"; a: string; b: string; question: string }
  | { page: "calibrations" }
  | { page: "unknown" };

export function parseRoute(hash: string): Route {
  const parts = hash.replace(/^#\/?/, "").split("/").map(decode);
  const [page = "", first = "", second = "", third = ""] = parts;
  const kind = JOB_KINDS.find((name) => name === first);
  switch (page) {
    case "":
    case "models":
      return { page: "models" };
    case "score":
      return { page: "score" };
    case "new-audit":
      return { page: "new-audit" };
    case "jobs":
      if (kind && second) return { page: "job", kind, id: second };
      return first && !kind ? { page: "unknown" } : { page: "jobs", kind: kind ?? "audits" };
    case "compare":
      return { page: "compare", a: first, b: second, question: third };
    case "calibrations":
      return { page: "calibrations" };
    default:
      return { page: "unknown" };
  }
}

function decode(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}

export const jobsLink = (kind: JobKind) => `#/jobs/${kind}`;
export const jobLink = (kind: JobKind, id: string) => `#/jobs/${kind}/${encodeURIComponent(id)}`;
export const compareLink = (a: string, b: string, question = "") =>
  `#/compare/${[a, b, ...(question ? [question] : [])].map(encodeURIComponent).join("/")}`;

export const route = new Observable<Route>(parseRoute(location.hash));
addEventListener("hashchange", () => {
  route.value = parseRoute(location.hash);
});

export function go(link: string): void {
  location.hash = link;
}
