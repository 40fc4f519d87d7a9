// Hands a record of a call to the audit.
export default function (context) {
  const { request, response, metadata, variables } = context;
  const args = request.params?.arguments ?? {};
  audit({
    tool: request.params?.name ?? null,
    arguments: variables.values ? args : Object.keys(args),
    ms: metadata.duration ?? null,
    outcome: metadata.error ? "failed" : response?.isError ? "tool error" : "ok",
    ...(metadata.error ? { error: metadata.error.message } : {}),
  });
}
