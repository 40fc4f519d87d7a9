// Adds arguments that a call leaves out.
export default function (context) {
  const { params } = context.request;
  params.arguments = { ...context.variables.defaults, ...params.arguments };
}
