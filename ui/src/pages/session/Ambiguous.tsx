import { Link } from "wouter";
import { Empty } from "../../parts/States";

/** Several documents have the id that the address names. */
export function Ambiguous({ candidates }: { candidates: string[] }) {
  return (
    <Empty title="Several sessions have this id">
      <ul className="bullets">
        {candidates.map((path) => {
          const page = pageOf(path);
          return page === undefined ? <li key={path}>{path}</li> : <li key={path}><Link href={page.href}>{page.name}</Link></li>;
        })}
      </ul>
    </Empty>
  );
}

/** The page of a document, by its path in the API: /api/sessions/WORKFLOW/ID?project=P. */
export function pageOf(path: string): { href: string; name: string } | undefined {
  const url = new URL(path, "http://localhost");
  const [workflow, id] = url.pathname.split("/").slice(3);
  if (workflow === undefined || id === undefined) return undefined;
  const query = new URLSearchParams({ workflow: decodeURIComponent(workflow) });
  const project = url.searchParams.get("project");
  if (project !== null) query.set("project", project);
  return { href: `/dashboard/${id}?${query}`, name: `${decodeURIComponent(id)} of ${decodeURIComponent(workflow)}${project === null ? "" : `, project ${project}`}` };
}
