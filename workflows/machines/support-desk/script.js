// Nothing that costs money goes out by itself: the state "approve" waits for a person.

export default {
  receive() {
    this.workflow_contexts.get("triage").addMessage({ role: "user", content: this.common_data.request });
  },

  sort() {
    const call = this.last_response.choices[0].message.tool_calls[0];
    this.common_data.sorted = JSON.parse(call.function.arguments);
  },

  desk() {
    // What names a lawyer is for people from the first word on.
    if (!this.common_data.sorted.legal) return "draft";
    this.finish("handed over", "");
    return "stop";
  },

  brief() {
    const data = this.common_data;
    const talk = this.workflow_contexts.get("case");
    if (data.drafts === 0) {
      talk.addMessage({ role: "user", content: `Rules: ${data.policy}\n\nRequest (${data.sorted.kind}):\n${data.request}` });
    } else {
      talk.addMessage({ role: "user", content: `Change this: ${data.remark}` });
    }
  },

  keepDraft() {
    const text = this.last_response.choices[0].message.content;
    const data = this.common_data;
    data.drafts += 1;
    data.proposal = text;
    this.workflow_contexts.get("case").addMessage({ role: "assistant", content: text });
  },

  needsApproval() {
    if (this.common_data.sorted.money) return "approve";
    this.finish("sent", this.common_data.proposal);
    return "stop";
  },

  afterDecision() {
    const { decision, proposal } = this.common_data;
    if (decision === "change") return "remark";
    this.finish(decision === "approve" ? "approved" : "rejected", decision === "approve" ? proposal : "");
    return "stop";
  },

  handOver() {
    this.finish(`handed over: ${this.error.message}`, "");
    return "stop";
  },

  finish(outcome, reply) {
    const { sorted = {}, drafts } = this.common_data;
    this.common_data.answer = { outcome, kind: sorted.kind ?? "unsorted", because: sorted.because ?? "", reply, drafts };
  },
};
