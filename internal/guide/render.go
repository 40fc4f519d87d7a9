package guide

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/guideway-dev/guideway/internal/condition"
	"github.com/guideway-dev/guideway/internal/definition/steps"
	"github.com/guideway-dev/guideway/internal/definition/template"
)

// Guidance is what an agent is told about a step.
type Guidance struct {
	// Prompt is the whole instruction: role, guidance, prompt and loop.
	Prompt string `json:"prompt"`
	// MetaGuidance holds throughout the workflow and comes once, with the
	// first step.
	MetaGuidance []string `json:"metaGuidance,omitempty"`
	// Functions are the definitions that the step refers to.
	Functions []steps.Function `json:"functionDefinitions,omitempty"`
	// Confirmation is set where a person must confirm the step.
	Confirmation string `json:"confirmation,omitempty"`
}

// StepView is a step as a caller sees it, with its templates filled in.
type StepView struct {
	ID                  string               `json:"id"`
	Title               string               `json:"title"`
	Prompt              string               `json:"prompt"`
	AgentRole           string               `json:"agentRole,omitempty"`
	Guidance            []string             `json:"guidance,omitempty"`
	AskForFiles         bool                 `json:"askForFiles,omitempty"`
	HasValidation       bool                 `json:"hasValidation,omitempty"`
	RequireConfirmation json.RawMessage      `json:"requireConfirmation,omitempty"`
	RunCondition        json.RawMessage      `json:"runCondition,omitempty"`
	ValidationCriteria  json.RawMessage      `json:"validationCriteria,omitempty"`
	FunctionDefinitions []steps.Function     `json:"functionDefinitions,omitempty"`
	FunctionCalls       []steps.FunctionCall `json:"functionCalls,omitempty"`
	FunctionReferences  []string             `json:"functionReferences,omitempty"`
}

// scene is a step with everything that its text depends on.
type scene struct {
	program *Program
	step    *steps.Step
	vars    condition.Lookup
	// loop, round and list are set in a loop.
	loop  *item
	round int
	list  []any
	// first says that nothing of the workflow was told before.
	first bool
	// begins says that the step is the first of its loop.
	begins bool
	// stateless says that the caller keeps the list of completed steps.
	stateless bool
}

// inLoop puts the scene into a round of a loop.
func (s *scene) inLoop(it *item, round int, list []any) {
	s.loop, s.round, s.list = it, round, list
	s.vars = over(roundVars(it.step.Loop, round, list), s.vars)
}

func (s *scene) fill(text string) string {
	return template.Render(template.Parse(text), s.vars)
}

func (s *scene) fillAll(texts []string) []string {
	if texts == nil {
		return nil
	}
	out := make([]string, len(texts))
	for i, t := range texts {
		out[i] = s.fill(t)
	}
	return out
}

func (s *scene) view() *StepView {
	st := s.step
	return &StepView{
		ID: st.ID, Title: s.fill(st.Title), Prompt: s.fill(st.Prompt),
		AgentRole: s.fill(st.AgentRole), Guidance: s.fillAll(st.Guidance),
		AskForFiles: st.AskForFiles, HasValidation: st.HasValidation,
		RequireConfirmation: json.RawMessage(st.Source.Confirm),
		RunCondition:        json.RawMessage(st.Source.Condition),
		ValidationCriteria:  json.RawMessage(st.Source.Criteria),
		FunctionDefinitions: st.Functions,
		FunctionCalls:       st.Calls,
		FunctionReferences:  st.References,
	}
}

func (s *scene) guidance() Guidance {
	g := Guidance{Prompt: s.prompt(), Functions: s.functions(), Confirmation: s.confirmation()}
	if s.first {
		g.MetaGuidance = s.program.Workflow.MetaGuidance
	}
	return g
}

// confirmation tells what a person must confirm, before a loop begins and after
// a step. It also asks where the condition cannot be decided: to ask once too
// often does less harm than not to ask.
func (s *scene) confirmation() string {
	var parts []string
	if s.begins && asks(s.loop.step.Confirm, s.vars) {
		parts = append(parts, fmt.Sprintf("Before you begin, ask the user whether '%s' may begin.", s.fill(s.loop.step.Title)))
	}
	if asks(s.step.Confirm, s.vars) {
		parts = append(parts, "Show the result of this step to the user and ask for confirmation before you go on.")
	}
	return strings.Join(parts, " ")
}

// asks says whether a confirmation is wanted: where its condition holds, and
// where it cannot be decided.
func asks(confirm *condition.Expr, vars condition.Lookup) bool {
	return confirm != nil && confirm.Decide(vars) != condition.No
}

// prompt composes role, guidance, prompt and loop in the order and under the
// headings of seed 000.
func (s *scene) prompt() string {
	var b strings.Builder
	if role := s.fill(s.step.AgentRole); strings.TrimSpace(role) != "" {
		b.WriteString("## Agent Role Instructions\n" + role + "\n\n")
	}
	if len(s.step.Guidance) > 0 {
		b.WriteString("## Step Guidance\n")
		for _, g := range s.step.Guidance {
			b.WriteString("- " + s.fill(g) + "\n")
		}
		b.WriteString("\n")
	}
	b.WriteString(s.fill(s.step.Prompt))
	if s.loop != nil {
		s.writeLoop(&b)
	}
	return b.String()
}

func (s *scene) writeLoop(b *strings.Builder) {
	fmt.Fprintf(b, "\n\n## Loop Context\n- Iteration: %d", s.round)
	if s.loop.step.Loop.Type == steps.LoopForEach {
		fmt.Fprintf(b, "\n- Total Items: %d\n- Current Index: %d", len(s.list), s.round-1)
	}
	if s.round == 1 {
		return
	}
	if s.stateless {
		fmt.Fprintf(b, "\n- When done: append \"%s\" to completedSteps again, for this round", s.step.ID)
	}
	b.WriteString("\n\n_Note: Refer to the phase overview provided in the first iteration for overall context._")
}

// functions are the definitions that the step refers to or calls, of the step,
// its loop or the workflow. A stateless caller sees the step's own in the step.
func (s *scene) functions() []steps.Function {
	var out []steps.Function
	seen := make(map[string]bool)
	add := func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		if f, ok := s.function(name); ok {
			out = append(out, f)
		}
	}
	for _, f := range s.step.Functions {
		if s.stateless {
			seen[f.Name] = true
		} else {
			add(f.Name)
		}
	}
	for _, ref := range s.step.References {
		add(strings.TrimSuffix(ref, "()"))
	}
	for _, call := range s.step.Calls {
		add(call.Name)
	}
	return out
}

func (s *scene) function(name string) (steps.Function, bool) {
	scopes := [][]steps.Function{s.step.Functions}
	if s.loop != nil {
		scopes = append(scopes, s.loop.step.Functions)
	}
	for _, scope := range scopes {
		for _, f := range scope {
			if f.Name == name {
				return f, true
			}
		}
	}
	f, ok := s.program.functions[name]
	return f, ok
}
