// Each reviewer sees the draft alone: what the other one says would lead them.

function text(response) {
  return response.choices[0].message.content;
}

export default {
  ask() {
    const { question, material } = this.common_data;
    this.workflow_contexts.get("research").addMessage({ role: "user", content: `Question: ${question}\n\nMaterial: ${material}` });
  },

  keepDraft() {
    this.common_data.draft = text(this.last_response);
    this.workflow_contexts.get("research").addMessage({ role: "assistant", content: this.common_data.draft });
  },

  showEvidence() { this.show("evidence_review"); },
  showCounter() { this.show("counter_review"); },

  show(context) {
    const { question, draft } = this.common_data;
    this.workflow_contexts.get(context).addMessage({ role: "user", content: `Question: ${question}\n\nDraft:\n${draft}` });
  },

  keepEvidence() { this.common_data.evidence = text(this.last_response); },
  keepCounter() { this.common_data.counter = text(this.last_response); },

  // A report with one review is worth more than none; it says what is missing.
  withoutEvidence() {
    this.common_data.evidence = `No review: ${this.error.message}`;
    return "counter";
  },

  withoutCounter() {
    this.common_data.counter = `No review: ${this.error.message}`;
    return "report";
  },

  giveReviews() {
    const { evidence, counter } = this.common_data;
    this.workflow_contexts.get("research").addMessage({
      role: "user",
      content: `Review of the evidence:\n${evidence}\n\nThe case against it:\n${counter}\n\nWrite the report.`,
    });
  },

  keepReport() {
    const { evidence, counter } = this.common_data;
    this.common_data.report = { text: text(this.last_response), reviews: { evidence, counter } };
  },
};
