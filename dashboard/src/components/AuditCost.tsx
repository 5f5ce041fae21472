import type { Dataset } from "../api/schemas";
import { type Pass, estimate } from "../pure/cost";
import { bytes, count, plural } from "../pure/format";
import { visible } from "../pure/text";
import { Note } from "./Notices";

interface Props {
  dataset: Dataset;
  /** Null where the page cannot tell them. */
  further: Pass[] | null;
  control: string | null;
}

/** An estimate from the bytes of the texts: none is tokenized yet. */
export function AuditCost({ dataset, further, control }: Props) {
  if (further === null) return <Note>The page cannot tell how often these methods read a text, as those of a preset; once the plan is made, the estimate takes its methods.</Note>;
  const passes = (1 + further.reduce((sum, pass) => sum + pass.count, 0)) * (control === null ? 1 : 2);
  return (
    <>
      <p data-cost>
        About {count(estimate(dataset.bytes, passes))} tokens: {plural(dataset.samples, "text")} of {bytes(dataset.bytes)}, a token for every four bytes,
        in {plural(passes, "pass", "passes")}{control !== null && <>, half of them by the control <code>{control}</code></>}. Statistics that the
        service has in its cache cost nothing.
      </p>
      {further.length > 0 && (
        <>
          <p>Passes beside that over the text itself{control !== null && ", by the model and by the control"}:</p>
          <ul>{further.map(({ key, words }) => <li key={key}>{visible(words)}</li>)}</ul>
        </>
      )}
    </>
  );
}
