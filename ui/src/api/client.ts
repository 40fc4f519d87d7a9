import createClient from "openapi-fetch";
import { escapeData, isOnlyShown } from "./hidden";
import type { components, paths } from "./schema";

export type Schemas = components["schemas"];
export type Problem = Schemas["Problem"];

/** What the server refused, with its reason and what to do. */
export class ApiError extends Error {
  readonly problem: Problem;
  readonly status: number;

  constructor(status: number, problem: Problem) {
    super(problem.error);
    this.name = "ApiError";
    this.status = status;
    this.problem = problem;
  }
}

/** The key that the login gave the pages of this origin; every request needs it. */
const keyName = "guideway-key";

function browserKey(): string {
  try {
    return localStorage.getItem(keyName) ?? "";
  } catch {
    return ""; // storage is off: the server answers that this browser is not logged in
  }
}

/** Sends a request with the key of this origin. */
export function fetchWithKey(input: RequestInfo | URL, init?: RequestInit): Promise<Response> {
  const request = input instanceof Request ? input : new Request(input, init);
  request.headers.set("X-Guideway-Key", browserKey());
  return fetch(request);
}

export const api = createClient<paths>({ baseUrl: "", credentials: "same-origin", fetch: fetchWithKey });

interface Outcome<T> {
  data?: T;
  error?: unknown;
  response: Response;
}

/** Gives what the server answers, or throws an ApiError. Texts that are only shown have their hidden characters escaped. */
export async function answerOf<T>(call: Promise<Outcome<T>>): Promise<T> {
  const { data, error, response } = await call;
  if (data !== undefined) return isOnlyShown(response.url) ? escapeData(data) : data;
  throw new ApiError(response.status, escapeData(problemOf(error, response)));
}

function problemOf(error: unknown, response: Response): Problem {
  if (typeof error === "object" && error !== null && "error" in error && "code" in error) return error as Problem;
  return { success: false, code: "internal", error: `The server answered ${response.status} ${response.statusText}`.trim() };
}
