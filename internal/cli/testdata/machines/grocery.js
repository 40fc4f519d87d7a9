// The handlers of the sample machine of the seed's system, written from its table of
// states.
const talk = "store_conversation";

export default {
  addInitialCustomerMessage() {
    this.workflow_contexts.get(talk).addMessage({ role: "user", content: this.common_data.initial_customer_request });
  },

  addWorkerResponse() {
    const { content } = this.last_response.choices[0].message;
    this.workflow_contexts.get(talk).addMessage({ role: "assistant", content });
  },

  alwaysTransitionToCustomer() {
    return "customer_decision";
  },

  processCustomerDecision() {
    const [call] = this.last_response.choices[0].message.tool_calls;
    const decision = JSON.parse(call.function.arguments);
    this.common_data.continue_shopping = decision.continue_shopping;
    if (decision.continue_shopping) {
      this.workflow_contexts.get(talk).addMessage({ role: "user", content: decision.continue_message });
    } else {
      this.common_data.interaction_summary = decision.shopping_summary;
    }
  },

  decideNextState() {
    return this.common_data.continue_shopping ? "worker_response" : "stop";
  },
};
