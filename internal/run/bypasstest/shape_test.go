package bypasstest

import (
	"encoding/json"
	"fmt"
)

// definition is a random definition of the steps dialect: what the model reads,
// and what becomes the document that the product reads.
type definition struct {
	id        string
	meta      string
	functions []function
	items     []*step
	// bodies are the top-level steps that only run in loops.
	bodies []*step
}

// step is a step or, with a loop, a loop.
type step struct {
	id string
	// serial makes the step's texts unique; see the marks.
	serial    int
	when      *test
	confirm   *confirmation
	human     bool
	criteria  *rule
	template  string
	role      bool
	guidance  bool
	functions []function
	refers    []string
	loop      *loop
}

// confirmation is requireConfirmation: true, or a condition.
type confirmation struct{ when *test }

type function struct{ name, text string }

// loop is the configuration of a loop and its body.
type loop struct {
	kind  string
	when  *test
	count any
	items string
	most  int
	// round, item and index name the loop's variables; empty is the default.
	round, item, index string
	body               []*step
	// ref says that the body is a top-level step.
	ref bool
}

// test is a condition. and, or and not have operands, the others a variable.
type test struct {
	op       string
	variable string
	value    any
	of       []*test
}

// rule is a criterion: a list, a composition or a simple rule.
type rule struct {
	kind     string
	message  string
	text     string
	flags    string
	min, max int
	shape    shape
	when     *test
	of       []*rule
}

// The marks by which a test finds a step's texts in an answer: those of its
// prompt, role, guidance, criteria and own functions, and that of its title.
func (s *step) secret() string { return fmt.Sprintf("SECRET-%d-", s.serial) }
func (s *step) title() string  { return fmt.Sprintf("Title TITLE-%d-", s.serial) }

func (l *loop) roundVar() string { return or(l.round, "currentIteration") }
func (l *loop) itemVar() string  { return or(l.item, "currentItem") }
func (l *loop) indexVar() string { return or(l.index, "currentIndex") }

func or(name, fallback string) string {
	if name == "" {
		return fallback
	}
	return name
}

// all gives every step and loop, bodies included, each once.
func (d *definition) all() []*step {
	var list []*step
	for _, s := range d.items {
		list = append(list, s)
		if s.loop != nil && !s.loop.ref {
			list = append(list, s.loop.body...)
		}
	}
	return append(list, d.bodies...)
}

// document is the definition as the product reads it.
func (d *definition) document() []byte {
	var list []any
	for _, s := range append(append([]*step{}, d.items...), d.bodies...) {
		list = append(list, s.document())
	}
	m := map[string]any{
		"id": d.id, "name": "Random", "description": "A random definition.", "version": "1.0.0", "steps": list,
	}
	if d.meta != "" {
		m["metaGuidance"] = []any{d.meta}
	}
	put(m, "functionDefinitions", functions(d.functions))
	text, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		panic(err) // of values that the generator has made
	}
	return text
}

func (s *step) document() map[string]any {
	m := map[string]any{"id": s.id, "title": s.title()}
	if s.when != nil {
		m["runCondition"] = s.when.document()
	}
	if s.human {
		m["approval"] = "human"
	}
	if s.confirm != nil {
		m["requireConfirmation"] = any(true)
		if s.confirm.when != nil {
			m["requireConfirmation"] = s.confirm.when.document()
		}
	}
	put(m, "functionDefinitions", functions(s.functions))
	if s.loop != nil {
		s.loop.fill(m)
		return m
	}
	m["prompt"] = s.promptText()
	if s.role {
		m["agentRole"] = "You are the role of " + s.secret()
	}
	if s.guidance {
		m["guidance"] = []any{"Mind " + s.secret()}
	}
	if s.criteria != nil {
		m["validationCriteria"] = s.criteria.document()
	}
	var refs []any
	for _, r := range s.refers {
		refs = append(refs, r+"()")
	}
	put(m, "functionReferences", refs)
	return m
}

func (s *step) promptText() string { return "Do " + s.secret() + s.template + "." }

func (l *loop) fill(m map[string]any) {
	c := map[string]any{"type": l.kind, "maxIterations": l.most}
	switch l.kind {
	case "for":
		c["count"] = l.count
	case "forEach":
		c["items"] = l.items
	default:
		c["condition"] = l.when.document()
	}
	for key, name := range map[string]string{"iterationVar": l.round, "itemVar": l.item, "indexVar": l.index} {
		if name != "" {
			c[key] = name
		}
	}
	m["type"], m["loop"] = "loop", c
	if l.ref {
		m["body"] = l.body[0].id
		return
	}
	var body []any
	for _, b := range l.body {
		body = append(body, b.document())
	}
	m["body"] = body
}

func (t *test) document() map[string]any {
	switch t.op {
	case "always":
		return map[string]any{}
	case "truthy":
		return map[string]any{"var": t.variable}
	case "and", "or":
		list := make([]any, len(t.of))
		for i, part := range t.of {
			list[i] = part.document()
		}
		return map[string]any{t.op: list}
	case "not":
		return map[string]any{"not": t.of[0].document()}
	default:
		return map[string]any{"var": t.variable, t.op: t.value}
	}
}

func (r *rule) document() any {
	list := make([]any, len(r.of))
	for i, part := range r.of {
		list[i] = part.document()
	}
	switch r.kind {
	case "list":
		return list
	case "and", "or":
		return map[string]any{r.kind: list}
	case "not":
		return map[string]any{"not": list[0]}
	}
	m := map[string]any{"type": r.kind, "message": r.message}
	switch r.kind {
	case "contains":
		m["value"] = r.text
	case "regex":
		m["pattern"] = r.text
		if r.flags != "" {
			m["flags"] = r.flags
		}
	case "length":
		m["min"], m["max"] = r.min, r.max
	case "schema":
		m["schema"] = r.shape.schema
	}
	if r.when != nil {
		m["condition"] = r.when.document()
	}
	return m
}

func functions(list []function) []any {
	var out []any
	for _, f := range list {
		out = append(out, map[string]any{"name": f.name, "definition": f.text})
	}
	return out
}

func put(m map[string]any, key string, list []any) {
	if len(list) > 0 {
		m[key] = list
	}
}
