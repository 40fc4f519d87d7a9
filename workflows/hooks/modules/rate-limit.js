// Refuses a call if there were too many in a time.
export default function (context) {
  const { limit, seconds, per, argument } = context.variables;
  if (!Object.hasOwn(state, per)) {
    throw new Error(`the variable per is ${per}; it can be client, upstream or global`);
  }
  let key = "calls";
  if (argument !== "") {
    const value = argument.split(".").reduce((value, name) => value?.[name], context.request.params.arguments);
    key += " " + sha256(JSON.stringify(value) ?? "");
  }
  if (state[per].incr(key, 1, { ttl: seconds * 1000 }) > limit) {
    const message = `more than ${limit} calls in ${seconds} seconds; call again later`;
    return { continue: false, error: { code: "RATE_LIMIT", message } };
  }
}
