package mcp

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/run"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// Machines is the service of the toolset "machines". Its refusals are *run.Refusal; see
// driver.Background.
type Machines interface {
	// Served returns the machines that clients may start.
	Served(ctx context.Context) ([]MachineInfo, error)
	Start(ctx context.Context, c run.Caller, r driver.StartRequest) (*driver.Status, error)
	Status(ctx context.Context, c run.Caller, id string) (*driver.Status, error)
	Wait(ctx context.Context, c run.Caller, id string, patience time.Duration) (*driver.Status, error)
	Input(ctx context.Context, c run.Caller, id string, answer driver.InputAnswer) (*driver.Status, error)
	Decide(ctx context.Context, c run.Caller, id string, answer driver.OutcomeAnswer) (*driver.Status, error)
	Cancel(ctx context.Context, c run.Caller, id, reason string) (*driver.Status, error)
	// Watch returns the updates of a run that this process executes, until cancel is
	// called; updates is nil if the process does not execute the run.
	Watch(id string) (updates <-chan driver.Update, cancel func())
}

// MachineInfo is a machine in the list for clients.
type MachineInfo struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Inputs      []MachineInput `json:"inputs"`
}

// MachineInput is an input that a new run accepts.
type MachineInput struct {
	Name        string          `json:"name"`
	Type        string          `json:"type"`
	Description string          `json:"description"`
	Required    bool            `json:"required"`
	Default     json.RawMessage `json:"default,omitempty"`
}

// machineTools is the toolset "machines": runs of agent machines.
type machineTools struct {
	machines Machines
	places   projects
	// open may be nil.
	open *OpenRuns
}

func (m *machineTools) newTools() map[string]*tool {
	return newTools(ToolsetMachines, handlers{
		"machine_list": m.listMachines, "machine_start": m.startMachine, "machine_status": m.serveOwnRun(m.getStatus),
		"machine_input": m.serveOwnRun(m.answerRun), "machine_cancel": m.serveOwnRun(m.cancelRun),
	})
}

// maxWaitSeconds is the longest time that a call waits for a run.
const maxWaitSeconds = 50

func (m *machineTools) listMachines(ctx context.Context, _ call) (any, error) {
	list, err := m.machines.Served(ctx)
	if err != nil {
		return nil, err
	}
	return map[string]any{"machines": append([]MachineInfo{}, list...)}, nil
}

func (m *machineTools) startMachine(ctx context.Context, c call) (any, error) {
	inputs := map[string]json.RawMessage{}
	for name, value := range c.objectArg("inputs") {
		text, err := json.Marshal(value)
		if err != nil {
			return nil, c.badCall("inputs", "inputs."+name+" cannot be encoded as JSON")
		}
		inputs[name] = text
	}
	allow, err := encodeAllow(ctx)
	if err != nil {
		return nil, err
	}
	guided, err := m.open.openIDs(ctx, c.req)
	if err != nil {
		return nil, err
	}
	project, err := m.places.findProject(ctx, c)
	if err != nil {
		return nil, err
	}
	s, err := m.machines.Start(ctx, c.caller, driver.StartRequest{
		Machine: c.textArg("machine"), Inputs: inputs, Goal: c.textArg("goal"), Project: project, RequestID: c.textArg("requestId"), Allow: allow, Guided: guided,
	})
	if err != nil {
		return s, err
	}
	// An earlier request with the same id may belong to another client.
	if err := m.checkOwnRun(ctx, c.caller, s.RunID); err != nil {
		return nil, err
	}
	if c.intArg("wait") <= 0 {
		return s, nil
	}
	return m.waitForRun(ctx, c, s.RunID)
}

// encodeAllow returns the permissions of this client, for the agents of a run that the
// client starts. It returns nil if auth.Delegate does.
func encodeAllow(ctx context.Context) (json.RawMessage, error) {
	lent := auth.Delegate(ctx)
	if lent == nil {
		return nil, nil
	}
	return json.Marshal(lent)
}

// checkOwnRun returns a not-found error if the client has a limited token and did not start
// the run. Such a client must neither read other clients' agents nor use, through them,
// tools that its token does not allow.
func (m *machineTools) checkOwnRun(ctx context.Context, c run.Caller, id string) error {
	mine := auth.Delegate(ctx)
	if mine == nil || mine.All {
		return nil
	}
	s, err := m.machines.Status(ctx, c, id)
	if err != nil {
		return err
	}
	var theirs auth.Delegation
	if len(s.Allow) > 0 && json.Unmarshal(s.Allow, &theirs) == nil && theirs.Token == mine.Token {
		return nil
	}
	return &run.Refusal{
		Code: guideway.CodeNotFound, Rule: run.RuleUnknownRun, Given: id, Message: fmt.Sprintf("there is no machine run %q", id),
		Fix: "pass a runId that machine_start returned to this client: a client sees only its own runs",
	}
}

// serveOwnRun returns the handler of a tool that concerns one run of the client.
func (m *machineTools) serveOwnRun(do func(context.Context, call) (*driver.Status, error)) func(context.Context, call) (any, error) {
	return func(ctx context.Context, c call) (any, error) {
		if err := m.checkOwnRun(ctx, c.caller, c.textArg("runId")); err != nil {
			return nil, err
		}
		return do(ctx, c)
	}
}

func (m *machineTools) getStatus(ctx context.Context, c call) (*driver.Status, error) {
	return m.waitForRun(ctx, c, c.textArg("runId"))
}

func (m *machineTools) answerRun(ctx context.Context, c call) (*driver.Status, error) {
	s, err := m.giveInput(ctx, c)
	if err != nil || c.intArg("wait") <= 0 {
		return s, err
	}
	return m.waitForRun(ctx, c, c.textArg("runId"))
}

// giveInput sends the value or the decision of a call to a run.
func (m *machineTools) giveInput(ctx context.Context, c call) (*driver.Status, error) {
	id := c.textArg("runId")
	guided, err := m.open.openIDs(ctx, c.req)
	if err != nil {
		return nil, err
	}
	if outcome := c.textArg("outcome"); outcome != "" {
		return m.machines.Decide(ctx, c.caller, id, driver.OutcomeAnswer{Decision: machineengine.Decision(outcome), Result: c.textArg("result"), Guided: guided})
	}
	var value json.RawMessage
	if _, given := c.arguments["value"]; given {
		text, err := json.Marshal(c.textArg("value"))
		if err != nil {
			return nil, c.badCall("value", "value cannot be encoded as JSON")
		}
		value = text
	}
	return m.machines.Input(ctx, c.caller, id, driver.InputAnswer{Value: value, Guided: guided})
}

func (m *machineTools) cancelRun(ctx context.Context, c call) (*driver.Status, error) {
	return m.machines.Cancel(ctx, c.caller, c.textArg("runId"), c.textArg("reason"))
}

// waitForRun returns the status of a run when it pauses or ends, or when the time has
// elapsed. Until then it sends progress if the client asked for it.
func (m *machineTools) waitForRun(ctx context.Context, c call, id string) (*driver.Status, error) {
	patience := time.Duration(min(max(c.intArg("wait"), 0), maxWaitSeconds)) * time.Second
	if progressOf(ctx, c.req) == nil || patience == 0 {
		return m.machines.Wait(ctx, c.caller, id, patience)
	}
	// Wait checks that the run belongs to the caller.
	if _, err := m.machines.Wait(ctx, c.caller, id, 0); err != nil {
		return nil, err
	}
	updates, cancel := m.machines.Watch(id)
	defer cancel()
	done := make(chan struct{})
	var sending sync.WaitGroup
	sending.Go(func() { sendProgress(ctx, c.req, updates, done) })
	s, err := m.machines.Wait(ctx, c.caller, id, patience)
	close(done)
	sending.Wait()
	return s, err
}

// sendProgress sends the updates of a run. After done is closed it sends the remaining ones
// and returns.
func sendProgress(ctx context.Context, req *mcp.CallToolRequest, updates <-chan driver.Update, done <-chan struct{}) {
	send := progressOf(ctx, req)
	tell := func(u driver.Update) {
		if message := progressText(u); message != "" {
			send(message)
		}
	}
	for {
		select {
		case u := <-updates:
			tell(u)
		case <-done:
			for len(updates) > 0 {
				tell(<-updates)
			}
			return
		}
	}
}

// progressOf returns a function that sends progress messages to the client, or nil if the
// client did not ask for them. The function must not be called concurrently.
func progressOf(ctx context.Context, req *mcp.CallToolRequest) func(message string) {
	token := req.Params.GetProgressToken()
	if token == nil || req.Session == nil {
		return nil
	}
	n := 0.0
	return func(message string) {
		n++
		// The client may have disconnected; the command continues or is cancelled with its call.
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Progress: n, Message: message})
	}
}

// progressText returns an update in a few words, "" if there is nothing to report.
func progressText(u driver.Update) string {
	const longest = 200
	if u.Event == nil {
		return ""
	}
	switch e := u.Event; e.Kind {
	case machineengine.KindStateEntered:
		return plainLine("state "+e.State, longest)
	case machineengine.KindModelIntent:
		return plainLine(fmt.Sprintf("%s asks %s", e.Agent, e.Model), longest)
	case machineengine.KindModelResult:
		if e.Error != nil {
			return plainLine(e.Agent+" received no answer: "+e.Error.Message, longest)
		}
		return plainLine(fmt.Sprintf("%s answered: %s", e.Agent, e.Response.Message.Content), longest)
	case machineengine.KindToolIntent:
		return plainLine(fmt.Sprintf("%s calls %s", e.Agent, e.Tool.Name), longest)
	case machineengine.KindInputRequested:
		return "waits for input"
	case machineengine.KindPaused:
		return plainLine("paused: "+e.Pause.Message, longest)
	case machineengine.KindCompleted:
		return "completed"
	default:
		return ""
	}
}
