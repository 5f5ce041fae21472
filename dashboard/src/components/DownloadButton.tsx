import { useState } from "preact/hooks";
import { download } from "../api/calls";
import { type Failure, toFailure } from "../api/failure";
import { useUnmounting } from "../load";
import { FailureNotice } from "./Notices";

interface Props {
  path: string;
  accept: string;
  file: string;
  label: string;
  /** Said in place of the failure where the service does not offer this. */
  missing?: string;
}

/** Downloads with the key, which a link could not send. */
export function DownloadButton({ path, accept, file, label, missing }: Props) {
  const [failure, setFailure] = useState<Failure | null>(null);
  const [busy, setBusy] = useState(false);
  const { signal } = useUnmounting();
  const save = async () => {
    setBusy(true);
    setFailure(null);
    try {
      const address = URL.createObjectURL(await download(path, accept, signal));
      const link = document.createElement("a");
      link.href = address;
      link.download = file;
      link.click();
      setTimeout(() => URL.revokeObjectURL(address), 60_000);
    } catch (error) {
      setFailure(toFailure(error));
    }
    setBusy(false);
  };
  const absent = missing && failure && (failure.status === 406 || failure.status === 409);
  return (
    <>
      <button type="button" disabled={busy} onClick={save}>{label}</button>
      {absent ? <span class="faint" role="status">{missing}</span> : <FailureNotice failure={failure} />}
    </>
  );
}
