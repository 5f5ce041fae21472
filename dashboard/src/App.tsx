import { Fragment, type JSX } from "preact";
import { useLayoutEffect, useRef } from "preact/hooks";
import { reachable } from "./api/http";
import { sessions } from "./api/key";
import { KeyButton, KeyDialog } from "./components/KeyDialog";
import { useObservable } from "./observable";
import { CalibrationsPage } from "./pages/CalibrationsPage";
import { ComparePage } from "./pages/ComparePage";
import { JobPage } from "./pages/JobPage";
import { JobsPage } from "./pages/JobsPage";
import { ModelsPage } from "./pages/ModelsPage";
import { NewAuditPage } from "./pages/NewAuditPage";
import { ScorePage } from "./pages/ScorePage";
import { type Route, route } from "./routes";

const PLACES: { link: string; label: string; pages: Route["page"][] }[] = [
  { link: "#/models", label: "Models", pages: ["models"] },
  { link: "#/score", label: "Score a text", pages: ["score"] },
  { link: "#/new-audit", label: "New audit", pages: ["new-audit"] },
  { link: "#/jobs/audits", label: "Jobs", pages: ["jobs", "job"] },
  { link: "#/compare", label: "Compare", pages: ["compare"] },
  { link: "#/calibrations", label: "Known works", pages: ["calibrations"] },
];

const TITLES: Record<Route["page"], string> = {
  models: "Models",
  score: "Score a text",
  "new-audit": "New audit",
  jobs: "Jobs",
  job: "Job",
  compare: "Compare two audits",
  calibrations: "Known works",
  unknown: "No such page",
};

function page(current: Route): JSX.Element {
  switch (current.page) {
    case "models":
      return <ModelsPage />;
    case "score":
      return <ScorePage />;
    case "new-audit":
      return <NewAuditPage />;
    case "jobs":
      return <JobsPage key={current.kind} kind={current.kind} />;
    case "job":
      return <JobPage key={`${current.kind}/${current.id}`} kind={current.kind} id={current.id} />;
    case "compare":
      return <ComparePage a={current.a} b={current.b} question={current.question} />;
    case "calibrations":
      return <CalibrationsPage />;
    case "unknown":
      return <p>There is no page of this address. <a href="#/models">Go to the models.</a></p>;
  }
}

export function App() {
  const current = useObservable(route);
  const answers = useObservable(reachable);
  const session = useObservable(sessions);
  const heading = useRef<HTMLHeadingElement>(null);
  const first = useRef(true);
  useLayoutEffect(() => {
    document.title = `${TITLES[current.page]} – pdr-audit`;
    if (!first.current) {
      scrollTo(0, 0);
      heading.current?.focus({ preventScroll: true });
    }
    first.current = false;
  }, [current]);
  return (
    <>
      <a class="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        heading.current?.focus();
      }}>Skip to the content</a>
      <header>
        <p class="brand">pdr-audit</p>
        <nav aria-label="Pages">
          <ul>
            {PLACES.map(({ link, label, pages }) => (
              <li key={link}><a href={link} aria-current={pages.includes(current.page) ? "page" : undefined}>{label}</a></li>
            ))}
          </ul>
        </nav>
        <KeyButton />
      </header>
      <div role="status">{!answers && <p class="banner">The service does not answer; trying again.</p>}</div>
      <main id="main">
        <h1 ref={heading} tabIndex={-1}>{TITLES[current.page]}</h1>
        <Fragment key={session}>{page(current)}</Fragment>
      </main>
      <footer>
        <p><a href="docs">API documentation</a>, <a href="openapi.json">OpenAPI document</a></p>
      </footer>
      <KeyDialog />
    </>
  );
}
