import { useQueryClient } from "@tanstack/react-query";
import { Suspense, useEffect, useState } from "react";
import { Route, Switch, useLocation } from "wouter";
import { follow } from "./api/live";
import type { Liveness } from "./api/stream";
import { ErrorBoundary } from "./parts/ErrorBoundary";
import { Frame } from "./parts/Frame";
import { loadPage } from "./parts/loadPage";
import { NoticeProvider } from "./parts/Notice";
import { Missing, Skeleton } from "./parts/States";
import { CallsPage } from "./pages/calls/CallsPage";
import { HooksPage } from "./pages/hooks/HooksPage";
import { MachinesPage } from "./pages/machines/MachinesPage";
import { OverviewPage } from "./pages/overview/OverviewPage";
import { RequestsPage } from "./pages/requests/RequestsPage";
import { RunsPage } from "./pages/runs/RunsPage";
import { SessionPage } from "./pages/session/SessionPage";
import { SessionsPage } from "./pages/sessions/SessionsPage";
import { WorkflowsPage } from "./pages/workflows/WorkflowsPage";

// What draws graphs and edits texts is fetched when it is first wanted.
const RunPage = loadPage(async () => (await import("./pages/run/RunPage")).RunPage);
const MachinePage = loadPage(async () => (await import("./pages/machines/MachinePage")).MachinePage);
const MachineRunPage = loadPage(async () => (await import("./pages/machines/MachineRunPage")).MachineRunPage);
const WorkflowPage = loadPage(async () => (await import("./pages/workflows/WorkflowPage")).WorkflowPage);
const EditorPage = loadPage(async () => (await import("./pages/editor/EditorPage")).EditorPage);
const RequestPage = loadPage(async () => (await import("./pages/requests/RequestPage")).RequestPage);
const HookPage = loadPage(async () => (await import("./pages/hooks/HookPage")).HookPage);
const GatewayPage = loadPage(async () => (await import("./pages/gateway/GatewayPage")).GatewayPage);
const UpstreamPage = loadPage(async () => (await import("./pages/gateway/UpstreamPage")).UpstreamPage);
const NewUpstreamPage = loadPage(async () => (await import("./pages/gateway/NewUpstreamPage")).NewUpstreamPage);
const CallPage = loadPage(async () => (await import("./pages/calls/CallPage")).CallPage);
const TokensPage = loadPage(async () => (await import("./pages/tokens/TokensPage")).TokensPage);
const TryPage = loadPage(async () => (await import("./pages/try/TryPage")).TryPage);

/** The application: a frame around the page that the address names. */
export function App() {
  const queries = useQueryClient();
  const [location] = useLocation();
  const [liveness, setLiveness] = useState<Liveness>("connecting");
  useEffect(() => follow(queries, setLiveness), [queries]);
  return (
    <NoticeProvider>
      <Frame liveness={liveness}>
        <ErrorBoundary place={location}><Suspense fallback={<Skeleton rows={12} />}>
          <Switch>
            <Route path="/"><OverviewPage /></Route>
            <Route path="/runs"><RunsPage /></Route>
            <Route path="/runs/:id">{({ id }) => <RunPage key={id} id={id} />}</Route>
            <Route path="/machines"><MachinesPage /></Route>
            <Route path="/machines/:name">{({ name }) => <MachinePage key={name} name={decodeURIComponent(name)} />}</Route>
            <Route path="/machine-runs/:id">{({ id }) => <MachineRunPage key={id} id={id} />}</Route>
            <Route path="/sessions"><SessionsPage /></Route>
            <Route path="/dashboard/:id">{({ id }) => <SessionPage key={id} id={id} />}</Route>
            <Route path="/workflows"><WorkflowsPage /></Route>
            <Route path="/workflows/:id">{({ id }) => <WorkflowPage key={id} id={id} />}</Route>
            <Route path="/workflows/:id/edit">{({ id }) => <EditorPage key={id} id={id} />}</Route>
            <Route path="/workflows/:id/try">{({ id }) => <TryPage key={id} id={id} />}</Route>
            <Route path="/hooks"><HooksPage /></Route>
            <Route path="/hooks/:id">{({ id }) => <HookPage key={id} id={id} />}</Route>
            <Route path="/new-hook"><HookPage /></Route>
            <Route path="/new-workflow"><EditorPage /></Route>
            <Route path="/requests"><RequestsPage /></Route>
            <Route path="/requests/:id">{({ id }) => <RequestPage key={id} id={id} />}</Route>
            <Route path="/calls"><CallsPage /></Route>
            <Route path="/calls/:id">{({ id }) => <CallPage key={id} id={id} />}</Route>
            <Route path="/gateway"><GatewayPage /></Route>
            <Route path="/gateway/:id">{({ id }) => <UpstreamPage key={id} id={decodeURIComponent(id)} />}</Route>
            <Route path="/new-upstream"><NewUpstreamPage /></Route>
            <Route path="/tokens"><TokensPage /></Route>
            <Route><Missing what="page" /></Route>
          </Switch>
        </Suspense></ErrorBoundary>
      </Frame>
    </NoticeProvider>
  );
}
