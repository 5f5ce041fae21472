import type { Catalogue } from "../api/schemas";
import { estimate, furtherPasses } from "../pure/cost";
import { bytes as inBytes, count, plural } from "../pure/format";

interface Props {
  bytes: number;
  samples: number;
  names: string[];
  catalogue: Catalogue;
  control: string | null;
}

/** An estimate from the bytes of the texts: none is tokenized yet. */
export function AuditCost({ bytes, samples, names, catalogue, control }: Props) {
  const further = furtherPasses(names, catalogue);
  const passes = 1 + further.reduce((sum, method) => sum + method.passes, 0);
  return (
    <>
      <p data-cost>
        About {count(estimate(bytes, passes, control !== null))} tokens: {plural(samples, "text")} of {inBytes(bytes)}, a token for every four bytes, in{" "}
        {plural(passes, "pass", "passes")}{control !== null && <>, and as much for the control <code>{control}</code></>}. Statistics that the service has in its cache cost nothing.
      </p>
      {further.length > 0 && <ul>{further.map(({ name, words }) => <li key={name}><code>{name}</code>: {words}</li>)}</ul>}
    </>
  );
}
