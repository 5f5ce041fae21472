import { useEffect, useState } from "preact/hooks";
import { download } from "../api/calls";
import { useLoad } from "../load";
import { FailureNotice } from "./Notices";

/** A page of the service, fetched with the key and shown without scripts, in an origin of its own. */
export function ReportFrame({ path, title }: { path: string; title: string }) {
  const { data, failure } = useLoad((signal) => download(path, "text/html", signal), [path]);
  const [address, setAddress] = useState<string | null>(null);
  useEffect(() => {
    if (!data) return;
    const made = URL.createObjectURL(new Blob([data], { type: "text/html; charset=utf-8" }));
    setAddress(made);
    return () => URL.revokeObjectURL(made);
  }, [data]);
  return (
    <>
      <FailureNotice failure={failure} />
      {address && <iframe src={address} title={title} sandbox="" />}
    </>
  );
}
