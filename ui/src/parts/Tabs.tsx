import { Tabs as Radix } from "radix-ui";
import type { ReactNode } from "react";
import { useSearchParams } from "wouter";
import "./tabs.css";

interface Tab {
  id: string;
  name: string;
  /** How many things are in it. */
  count?: number | undefined;
  body: ReactNode;
}

/** Tabs whose choice is in the address; the first one is chosen without. */
export function Tabs({ label, tabs, param = "tab" }: { label: string; tabs: Tab[]; param?: string }) {
  const [search, setSearch] = useSearchParams();
  const first = tabs[0]?.id ?? "";
  const chosen = tabs.find((t) => t.id === search.get(param))?.id ?? first;
  const choose = (id: string) => setSearch((now) => {
    if (id === first) now.delete(param);
    else now.set(param, id);
    return now;
  }, { replace: true });
  return (
    <Radix.Root value={chosen} onValueChange={choose} className="tabs">
      <Radix.List aria-label={label} className="tabs-list">
        {tabs.map((t) => (
          <Radix.Trigger key={t.id} value={t.id} className="tab">
            {t.name}{t.count === undefined ? null : <span className="quiet"> {t.count.toLocaleString()}</span>}
          </Radix.Trigger>
        ))}
      </Radix.List>
      {tabs.map((t) => <Radix.Content key={t.id} value={t.id} className="tabs-body">{t.body}</Radix.Content>)}
    </Radix.Root>
  );
}
