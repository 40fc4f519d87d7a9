// Before the call, answers it with a stored result; after the call, stores the result.
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
  if (response === undefined) {
    const known = state[per].get(key);
    if (known !== null) {
      console.log("answered from the cache");
      context.response = known;
      return { continue: false, context };
    }
  } else if (response.isError !== true && isExact(response)) {
    try {
      state[per].set(key, response, { ttl: seconds * 1000 });
    } catch (error) {
      console.warn(`the result is not stored: ${error.message}`); // the call has its result anyway
    }
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
