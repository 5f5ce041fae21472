import { useMemo, useState } from "preact/hooks";
import { Submissions } from "../api/calls";
import { type Failure, toFailure } from "../api/failure";
import { sessions } from "../api/key";
import type { Catalogue, Dataset, Job, ModelEntry } from "../api/schemas";
import { Observable, useObservable } from "../observable";
import { type Methods, methodRequests } from "../pure/methods";
import { type Draft, initialDraft, owner, possible } from "./draft";

interface Entered {
  draft: Draft;
  dataset: Dataset | null;
}

/** The entries of a form, which stay while other pages are open, until they are submitted or the key is forgotten. */
type Kept = Observable<Entered | null>;

export const auditForm: Kept = new Observable<Entered | null>(null);
export const calibrationForm: Kept = new Observable<Entered | null>(null);
sessions.subscribe(() => {
  auditForm.value = null;
  calibrationForm.value = null;
});

export interface Form extends Entered {
  methods: Methods;
  hasReference: boolean;
  change(part: Partial<Draft>): void;
  choose(dataset: Dataset | null): void;
  failure: Failure | null;
  busy: boolean;
  /** Runs what a button does, and shows its failure. */
  act(action: () => Promise<void>): Promise<void>;
  submissions: Submissions;
}

/** The state of a form of texts, model and methods. `models` are those that score texts. */
export function useForm(kept: Kept, models: ModelEntry[], catalogue: Catalogue, calibrations: Job[] = []): Form {
  const [initial] = useState(() => ({ draft: initialDraft(models), dataset: null }));
  const entered: Entered = useObservable(kept) ?? initial;
  const draft = possible(entered.draft, models, calibrations);
  const { dataset } = entered;
  const [failure, setFailure] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);
  const [submissions] = useState(() => new Submissions());
  const hasReference = owner(models, draft.model)?.reference != null;
  const methods = useMemo(() => methodRequests(draft.choice, catalogue, hasReference), [draft.choice, catalogue, hasReference]);
  const take = (part: Partial<Entered>) => {
    kept.value = { ...(kept.value ?? initial), ...part };
  };
  const act = async (action: () => Promise<void>) => {
    setBusy(true);
    setFailure(null);
    try {
      await action();
    } catch (error) {
      setFailure(toFailure(error));
    }
    setBusy(false);
  };
  return {
    draft, dataset, methods, hasReference, failure, busy, act, submissions,
    change: (part) => take({ draft: { ...(kept.value ?? initial).draft, ...part } }),
    choose: (chosen) => take({ dataset: chosen }),
  };
}
