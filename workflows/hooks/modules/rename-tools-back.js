// Finds the tool that a call means by the name that agents see.
export default function (context) {
  const { params } = context.request;
  const found = Object.entries(context.variables.names).find(([, seen]) => seen === params.name);
  if (found) {
    params.name = found[0];
  }
}
