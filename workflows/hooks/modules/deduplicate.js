// Before the call, claims it, or answers it with the result of an equal call; after the
// call, stores the result.
export default function (context) {
  const { seconds, per } = context.variables;
  if (!Object.hasOwn(state, per)) {
    throw new Error(`the variable per is ${per}; it can be client, upstream or global`);
  }
  const { request, response } = context;
  const key = keyOf(request.params);
  if (key === undefined) {
    return; // equal keys would not mean equal calls
  }
  const ttl = seconds * 1000;
  if (response === undefined) {
    if (state[per].set(key, "sent", { ttl, if: null })) {
      return;
    }
    const known = state[per].get(key);
    if (known?.response === undefined) {
      const message = `an equal call was sent less than ${seconds} seconds ago, and its result is not known`;
      return { continue: false, error: { code: "DUPLICATE", message } };
    }
    console.log("answered with the result of an equal call");
    context.response = known.response;
    return { continue: false, context };
  }
  try {
    if (response.isError === true) {
      state[per].set(key, null);
    } else if (isExact(response)) {
      state[per].set(key, { response }, { ttl });
    }
  } catch (error) {
    console.warn(`the result is not stored: ${error.message}`); // the call has its result anyway
  }
}

// The members of an object can come in any order.
function sortMembers(value) {
  if (Array.isArray(value)) {
    return value.map(sortMembers);
  }
  if (value === null || typeof value !== "object") {
    return value;
  }
  return Object.fromEntries(Object.keys(value).sort().map((name) => [name, sortMembers(value[name])]));
}

function keyOf({ name, arguments: args = {} }) {
  return isExact(args) ? sha256(JSON.stringify([name, sortMembers(args)])) : undefined;
}

// JavaScript rounds larger numbers, so two different ones could become equal.
function isExact(value) {
  if (typeof value === "number") {
    return Math.abs(value) <= Number.MAX_SAFE_INTEGER;
  }
  return value === null || typeof value !== "object" || Object.values(value).every(isExact);
}
