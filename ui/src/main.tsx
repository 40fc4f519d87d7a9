import { QueryClient, QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import "./look/tokens.css";
import "./look/base.css";
import { ApiError } from "./api/client";
import { App } from "./App";

const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 30_000,
      // What the server has refused, it refuses again.
      retry: (count, error) => !(error instanceof ApiError && error.status < 500) && count < 2,
    },
  },
});

const root = document.getElementById("root");
if (root === null) throw new Error("the page has no root");
createRoot(root).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <App />
    </QueryClientProvider>
  </StrictMode>,
);
