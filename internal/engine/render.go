package engine

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"

	"github.com/guideway-dev/guideway/internal/platform/jsontext"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/workflow/expr"
	"github.com/guideway-dev/guideway/internal/workflow/steps"
	"github.com/guideway-dev/guideway/internal/workflow/template"
)

// Guidance is the text about a step for an agent.
type Guidance struct {
	// Prompt is the whole instruction: role, guidance, prompt and loop.
	Prompt string `json:"prompt"`
	// MetaGuidance applies to the whole workflow and is returned once, with the first step.
	MetaGuidance []string `json:"metaGuidance,omitempty"`
	// Functions are the function definitions that the step refers to.
	Functions []steps.Function `json:"functionDefinitions,omitempty"`
	// Confirmation is the request for a person's confirmation. It may be empty.
	Confirmation string `json:"confirmation,omitempty"`
}

// StepView is a step with its templates rendered, for a caller.
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

// stepText renders the texts of a step.
type stepText struct {
	program *Program
	step    *steps.Step
	vars    expr.Lookup
	// loop, round and list are set in a loop.
	loop  *item
	round int
	list  []any
	// first is set if this is the first text of the workflow.
	first bool
	// startsLoop is set if the step is the first of its loop, startsRound if the step is
	// the first of its round.
	startsLoop, startsRound bool
	// stateless is set if the caller keeps the list of completed steps.
	stateless bool
}

// enterRound adds a round of a loop and its variables.
func (s *stepText) enterRound(it *item, round int, list []any) {
	s.loop, s.round, s.list = it, round, list
	s.vars = overlayVars(roundVars(it.step.Loop, round, list), s.vars)
}

func (s *stepText) fillText(text string) string {
	return template.Render(template.Parse(text), s.vars)
}

func (s *stepText) fillAll(texts []string) []string {
	if texts == nil {
		return nil
	}
	return lists.Map(texts, s.fillText)
}

func (s *stepText) stepView() *StepView {
	st := s.step
	return &StepView{
		ID: st.ID, Title: s.fillText(st.Title), Prompt: s.fillText(st.Prompt),
		AgentRole: s.fillText(st.AgentRole), Guidance: s.fillAll(st.Guidance),
		AskForFiles: st.AskForFiles, HasValidation: st.HasValidation,
		RequireConfirmation: json.RawMessage(st.Source.Confirm),
		RunCondition:        json.RawMessage(st.Source.Condition),
		ValidationCriteria:  json.RawMessage(st.Source.Criteria),
		FunctionDefinitions: st.Functions,
		FunctionCalls:       st.Calls,
		FunctionReferences:  st.References,
	}
}

func (s *stepText) buildGuidance() Guidance {
	g := Guidance{Prompt: s.buildPrompt(), Functions: s.listFunctions(), Confirmation: s.confirmationText()}
	if s.first {
		g.MetaGuidance = s.program.Workflow.MetaGuidance
	}
	return g
}

// confirmationText returns the request for a person's confirmation, before a loop or after
// a step. It also asks if the condition is undecided, because an unnecessary question does
// less harm than a missing one.
func (s *stepText) confirmationText() string {
	var parts []string
	if s.startsLoop && needsConfirmation(s.loop.step.Confirm, s.vars) {
		parts = append(parts, fmt.Sprintf("Before you begin, ask the user whether '%s' may begin.", s.fillText(s.loop.step.Title)))
	}
	if needsConfirmation(s.step.Confirm, s.vars) {
		parts = append(parts, "Show the result of this step to the user and ask for confirmation before you continue.")
	}
	return strings.Join(parts, " ")
}

// needsConfirmation reports whether the confirmation's condition holds or is undecided.
func needsConfirmation(confirm *expr.Expr, vars expr.Lookup) bool {
	return confirm != nil && confirm.Decide(vars) != expr.No
}

// buildPrompt composes role, guidance, prompt and loop in the order and with the headings
// of WorkRail.
func (s *stepText) buildPrompt() string {
	var b strings.Builder
	if role := s.fillText(s.step.AgentRole); strings.TrimSpace(role) != "" {
		b.WriteString("## Agent Role Instructions\n" + role + "\n\n")
	}
	if len(s.step.Guidance) > 0 {
		b.WriteString("## Step Guidance\n")
		for _, g := range s.step.Guidance {
			b.WriteString("- " + s.fillText(g) + "\n")
		}
		b.WriteString("\n")
	}
	if s.startsRound && s.loop.step.Prompt != "" {
		b.WriteString("## Loop Instructions\n" + s.fillText(s.loop.step.Prompt) + "\n\n")
	}
	b.WriteString(s.fillText(s.step.Prompt))
	if s.loop != nil {
		s.writeLoop(&b)
	}
	return b.String()
}

func (s *stepText) writeLoop(b *strings.Builder) {
	fmt.Fprintf(b, "\n\n## Loop Context\n- Iteration: %d", s.round)
	if s.loop.step.Loop.Type == steps.LoopForEach {
		fmt.Fprintf(b, "\n- Total Items: %d\n- Current Index: %d", len(s.list), s.round-1)
		if most := s.loop.step.Loop.MaxIterations; len(s.list) > most {
			fmt.Fprintf(b, "\n- Limit: the loop ends after item %d of %d (maxIterations)", most, len(s.list))
		}
	}
	if s.round == 1 || !s.stateless { // a run may be resumed by an agent that has not seen its first round
		return
	}
	fmt.Fprintf(b, "\n- When done: append \"%s\" to completedSteps again, for this round", s.step.ID)
	b.WriteString("\n\n_Note: Refer to the phase overview provided in the first iteration for overall context._")
}

// listFunctions returns the definitions that the step refers to or calls, from the step,
// its loop or the workflow. It omits the step's own definitions for a stateless caller, who
// receives them with the step.
func (s *stepText) listFunctions() []steps.Function {
	var out []steps.Function
	seen := make(map[string]bool)
	add := func(name string) {
		if seen[name] {
			return
		}
		seen[name] = true
		if f, ok := s.findFunction(name); ok {
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

func (s *stepText) findFunction(name string) (steps.Function, bool) {
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

// The limits of a context: for workflow_next in estimated bytes, as in WorkRail, for runs in
// bytes of its JSON.
const (
	maxContextSize  = 256 * 1024
	warnContextSize = maxContextSize * 8 / 10
)

// ContextSize estimates the bytes of a context as WorkRail does: two for each UTF-16 unit
// of a string or key, eight or more for a number, four for a boolean, a null and for each
// list or object.
func ContextSize(v any) int {
	switch x := v.(type) {
	case string:
		return 2 * jsontext.CountUTF16(x)
	case float64, int, int64:
		return 8
	case json.Number:
		return max(8, 2*len(x)) // json.Number is counted by its text
	case bool, nil:
		return 4
	case []any:
		n := 4
		for _, item := range x {
			n += ContextSize(item)
		}
		return n
	case map[string]any:
		n := 4
		for k, item := range x {
			n += 2*jsontext.CountUTF16(k) + ContextSize(item)
		}
		return n
	default:
		return 0
	}
}

// maxContextDepth limits the nesting of variables, because JSON decoders limit it, too.
const maxContextDepth = 128

// exceedsDepth reports whether lists and objects are nested more than most levels deep.
func exceedsDepth(v any, most int) bool {
	switch x := v.(type) {
	case []any:
		for _, item := range x {
			if most == 0 || exceedsDepth(item, most-1) {
				return true
			}
		}
	case map[string]any:
		for _, item := range x {
			if most == 0 || exceedsDepth(item, most-1) {
				return true
			}
		}
	}
	return false
}

// toKilobytes converts bytes to kilobytes, rounded as in WorkRail's messages.
func toKilobytes(n int) int { return int(math.Round(float64(n) / 1024)) }

func contextTooLarge(n int) string {
	return fmt.Sprintf("Context size (%dKB) exceeds maximum allowed size (%dKB)", toKilobytes(n), maxContextSize/1024)
}

func contextNearlyFull(n int) string {
	return fmt.Sprintf("Context size (%dKB) exceeds 80%% of maximum (%dKB)", toKilobytes(n), maxContextSize/1024)
}
