package clienthook

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
)

// maxRefusedStops is the number of stops in a row that are refused at a position.
const maxRefusedStops = 3

// answerAfterTool binds the session to the run that a call has started or continued, and
// restates the position after a compaction.
func (h *Handler) answerAfterTool(ctx context.Context, ev Event, session *Session) (Answer, error) {
	prefix, tool, ok := splitRunTool(ev.Tool)
	if !ok {
		if session == nil || !session.Restate {
			return Answer{}, nil
		}
		a, err := h.restateRuns(ctx, session)
		if err != nil {
			return a, err
		}
		return a, h.Sessions.Update(ctx, h.Client.ID, ev.Session, func(s *Session) { s.Restate = false })
	}
	token := tokenOf(ev, tool)
	if token == "" {
		return Answer{}, nil // the call was refused
	}
	runs, err := h.Open(ctx)
	if err != nil {
		return Answer{}, err
	}
	r, err := findRun(ctx, runs, token)
	if err != nil {
		return Answer{}, err
	}
	if r == nil {
		return Answer{Notice: fmt.Sprintf("The run that %s started or continued is not in %s, so the hooks of %s do not watch the run; try: guideway install %s --hooks --env GUIDEWAY_DATA_DIR=DIR, with the data directory of the server.",
			clip(ev.Tool, 100), h.StoreName, h.Client.Title, h.Client.ID)}, nil
	}
	isAnswer := strings.HasPrefix(token, handlePrefix) || bytes.Contains(ev.Result, []byte(r.Handle))
	if r.isEnded() || !isAnswer { // a refusal names the run, but not its current handle
		return Answer{}, nil
	}
	bound, err := h.bindRun(ctx, runs, session, ev, r.ID, prefix)
	if err != nil {
		return Answer{}, err
	}
	if !bound {
		return Answer{Notice: fmt.Sprintf("The session has %d open runs, which is the maximum, so the hooks of %s do not watch the run %s; end one of the others with workflow_abort, then call workflow_continue for the run %s again.",
			maxRunsOfSession, h.Client.Title, r.ID, r.ID)}, nil
	}
	return Answer{}, runs.RecordHooked(ctx, r.ID, h.Client.ID)
}

// bindRun binds the session of an event to a run. It reports false if the session has too
// many open runs: an earlier run never makes room, because its policy would then end.
func (h *Handler) bindRun(ctx context.Context, runs Runs, session *Session, ev Event, id, prefix string) (bound bool, err error) {
	ended := map[string]bool{}
	if session != nil && len(session.Runs) >= maxRunsOfSession {
		for _, b := range session.Runs {
			r, err := runs.Load(ctx, b.ID)
			if err != nil && guideway.ErrorCode(err) != guideway.CodeNotFound {
				return false, err
			}
			ended[b.ID] = err != nil || r.isEnded()
		}
	}
	err = h.Sessions.Update(ctx, h.Client.ID, ev.Session, func(s *Session) {
		s.Runs = slices.DeleteFunc(s.Runs, func(b BoundRun) bool { return ended[b.ID] })
		bound, s.Restate = s.bind(id, ev.Agent, prefix), false
	})
	return bound, err
}

// findRun returns the run of a handle or an id, or nil if it does not exist.
func findRun(ctx context.Context, runs Runs, token string) (*Run, error) {
	find := runs.Load
	if strings.HasPrefix(token, handlePrefix) {
		find = runs.Find
	}
	r, err := find(ctx, token)
	if guideway.ErrorCode(err) == guideway.CodeNotFound {
		return nil, nil
	}
	return r, err
}

// The prefixes of the ids of runs and of handles.
const (
	runPrefix    = "r_"
	handlePrefix = "h_"
)

// tokenOf returns the handle or the id of the run that a call of a run tool works on: the
// handle in its arguments, if it continues a run, and otherwise the first id or handle in its
// result. The answer of the server begins with them; the texts of the agent, such as a
// variable in a prompt, can name other runs, but only later.
func tokenOf(ev Event, tool string) string {
	var args struct {
		Handle string `json:"handle"`
	}
	if tool == "workflow_continue" && json.Unmarshal(ev.Arguments, &args) == nil && args.Handle != "" {
		return args.Handle
	}
	isPart := func(c byte) bool { return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' }
	for rest := []byte(ev.Result); len(rest) > 0; rest = rest[1:] {
		length := 0
		switch {
		case bytes.HasPrefix(rest, []byte(runPrefix)):
			length = 25 // the prefix and 23 characters
		case bytes.HasPrefix(rest, []byte(handlePrefix)):
			length = 23 // the prefix and 21 characters
		default:
			continue
		}
		end := len(runPrefix)
		for end < len(rest) && isPart(rest[end]) {
			end++
		}
		if end == length {
			return string(rest[:end])
		}
	}
	return ""
}

// answerStop refuses a stop while a run of the agent is open and waits for no person. After
// maxRefusedStops refusals at a position it allows the stop and records it. A subagent is
// held only by the runs that it called first; when it stops, they become those of the main
// agent.
func (h *Handler) answerStop(ctx context.Context, ev Event, session *Session) (Answer, error) {
	agent := ev.Agent
	if ev.Kind == KindStop {
		agent = ""
	}
	if ev.Kind == KindSubagentStop && agent == "" || ev.Interrupted ||
		!slices.ContainsFunc(session.Runs, func(b BoundRun) bool { return b.Agent == agent }) {
		return Answer{}, nil
	}
	runs, err := h.Open(ctx)
	if err != nil {
		return Answer{}, err
	}
	states, err := loadStates(ctx, runs, session, agent)
	if err != nil {
		return Answer{}, err
	}
	var stop stopResult
	err = h.Sessions.Update(ctx, h.Client.ID, ev.Session, func(s *Session) { stop = s.stopAgent(agent, states) })
	if err != nil {
		return Answer{}, err
	}
	for _, b := range stop.record {
		if err := runs.RecordStop(ctx, b.ID, h.Client.ID, b.Refused); err != nil {
			return Answer{}, err
		}
	}
	if stop.held == nil {
		return Answer{}, nil
	}
	return Answer{Refused: true, Reason: refusedStopText(stop.held, stop.count)}, nil
}

// stopResult is the effect of a stop: the run that holds the agent, with the number of
// refusals, and the runs for which the stop is recorded.
type stopResult struct {
	held   *Run
	count  int
	record []BoundRun
}

// stopAgent counts the stop of an agent, and removes the runs that have ended or do not
// exist.
func (s *Session) stopAgent(agent string, states map[string]*Run) stopResult {
	var result stopResult
	s.Runs = slices.DeleteFunc(s.Runs, func(b BoundRun) bool {
		r, loaded := states[b.ID]
		return loaded && (r == nil || r.isEnded())
	})
	for i := range s.Runs {
		b := &s.Runs[i]
		r := states[b.ID]
		switch {
		case r == nil || b.Agent != agent || r.waitsForPerson():
		case b.refuse(r.Handle):
			if result.held == nil {
				result.held, result.count = r, b.Refused
			}
		case !b.Recorded:
			b.Recorded = true
			result.record = append(result.record, *b)
		}
	}
	if result.held == nil && agent != "" {
		s.passOn(agent)
	}
	return result
}

// refuse counts a refusal at the position of a handle. It returns false, and counts
// nothing, if maxRefusedStops stops have been refused there. A new position starts the
// count again.
func (b *BoundRun) refuse(handle string) bool {
	if b.Handle != handle {
		b.Handle, b.Refused, b.Recorded = handle, 0, false
	}
	if b.Refused >= maxRefusedStops {
		return false
	}
	b.Refused++
	return true
}

// passOn makes the runs of a subagent those of the main agent.
func (s *Session) passOn(agent string) {
	for i := range s.Runs {
		if s.Runs[i].Agent == agent {
			s.Runs[i].Agent, s.Runs[i].Refused = "", 0
		}
	}
}

// loadStates loads the runs of an agent. A run that does not exist is nil.
func loadStates(ctx context.Context, runs Runs, session *Session, agent string) (map[string]*Run, error) {
	states := map[string]*Run{}
	for _, b := range session.Runs {
		if b.Agent != agent {
			continue
		}
		r, err := runs.Load(ctx, b.ID)
		if err != nil && guideway.ErrorCode(err) != guideway.CodeNotFound {
			return nil, err
		}
		if err != nil {
			r = nil
		} else if r.HeldCall, err = runs.HasHeldCall(ctx, b.ID); err != nil {
			return nil, err
		}
		states[b.ID] = r
	}
	return states, nil
}

// answerCompaction restates the position for a client that adds a text to the instructions
// of the compaction. For a client that reports nothing after a compaction, the position
// follows after the next call.
func (h *Handler) answerCompaction(ctx context.Context, ev Event, session *Session) (Answer, error) {
	a, err := h.restateRuns(ctx, session)
	if err != nil || a.Context == "" || !h.Client.restatesLater {
		a.Context = prefixText("Keep this in the summary:\n", a.Context)
		return a, err
	}
	return Answer{Notice: a.Notice}, h.Sessions.Update(ctx, h.Client.ID, ev.Session, func(s *Session) { s.Restate = true })
}

// prefixText returns a text with a prefix, or "" for an empty text.
func prefixText(prefix, text string) string {
	if text == "" {
		return ""
	}
	return prefix + text
}
