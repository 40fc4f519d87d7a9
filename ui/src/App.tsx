import { useQueryClient } from "@tanstack/react-query";
import { useEffect, useState } from "react";
import { Redirect, Route, Switch } from "wouter";
import { follow, type Liveness } from "./api/live";
import { Frame } from "./parts/Frame";
import { Missing } from "./parts/States";
import { OverviewPage } from "./pages/overview/OverviewPage";
import { RunPage } from "./pages/run/RunPage";
import { RunsPage } from "./pages/runs/RunsPage";
import { SessionsPage } from "./pages/sessions/SessionsPage";

/** The application: a frame around the page that the address names. */
export function App() {
  const queries = useQueryClient();
  const [liveness, setLiveness] = useState<Liveness>("connecting");
  useEffect(() => follow(queries, setLiveness), [queries]);
  return (
    <Frame liveness={liveness}>
      <Switch>
        <Route path="/"><OverviewPage /></Route>
        <Route path="/runs"><RunsPage /></Route>
        <Route path="/runs/:id">{({ id }) => <RunPage key={id} id={id} />}</Route>
        <Route path="/sessions"><SessionsPage /></Route>
        <Route path="/overview"><Redirect to="/" replace /></Route>
        <Route><Missing what="page" /></Route>
      </Switch>
    </Frame>
  );
}
