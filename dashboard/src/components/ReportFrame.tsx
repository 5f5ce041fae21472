import { useEffect, useState } from "preact/hooks";
import { download } from "../api/calls";
import { type Failure, toFailure } from "../api/failure";
import { FailureNotice } from "./Notices";

/** A page of the service, fetched with the key and shown without scripts, in an origin of its own. */
export function ReportFrame({ path, title }: { path: string; title: string }) {
  const [address, setAddress] = useState<string | null>(null);
  const [failure, setFailure] = useState<Failure | null>(null);
  useEffect(() => {
    let made: string | null = null;
    let current = true;
    download(path, "text/html").then(
      (page) => {
        if (!current) return;
        made = URL.createObjectURL(new Blob([page], { type: "text/html; charset=utf-8" }));
        setAddress(made);
      },
      (error) => current && setFailure(toFailure(error)),
    );
    return () => {
      current = false;
      if (made) URL.revokeObjectURL(made);
    };
  }, [path]);
  return (
    <>
      <FailureNotice failure={failure} />
      {address && <iframe src={address} title={title} sandbox="" />}
    </>
  );
}
