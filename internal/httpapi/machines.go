package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"time"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	machinedef "github.com/guideway-dev/guideway/internal/machine/definition"
	"github.com/guideway-dev/guideway/internal/machine/driver"
	machineengine "github.com/guideway-dev/guideway/internal/machine/engine"
	"github.com/guideway-dev/guideway/internal/platform/lists"
	"github.com/guideway-dev/guideway/internal/run"
)

// Machines is the part of agent machines that the API uses. Its commands also continue the
// runs that they change. A refusal is a *run.Refusal.
type Machines interface {
	Entries() []*catalog.MachineEntry
	Entry(name string) (*catalog.MachineEntry, error)
	Start(context.Context, run.Caller, driver.StartRequest) (*driver.Status, error)
	Status(ctx context.Context, c run.Caller, id string) (*driver.Status, error)
	View(ctx context.Context, c run.Caller, id string) (*driver.View, error)
	List(context.Context, run.Caller, run.Filter) ([]run.Record, error)
	Events(ctx context.Context, c run.Caller, id string) ([]run.Event, error)
	Input(ctx context.Context, c run.Caller, id string, answer driver.InputAnswer) (*driver.Status, error)
	Decide(ctx context.Context, c run.Caller, id string, answer driver.OutcomeAnswer) (*driver.Status, error)
	Resume(ctx context.Context, c run.Caller, id string, limits machineengine.Limits) (*driver.Status, error)
	AcceptTools(ctx context.Context, c run.Caller, id string) (*driver.Status, error)
	Cancel(ctx context.Context, c run.Caller, id, reason string) (*driver.Status, error)
	Fork(ctx context.Context, c run.Caller, id string, seq int64) (*driver.Status, error)
	Watch(id string) (updates <-chan driver.Update, cancel func())
}

func (a *api) machineRoutes() []route {
	return []route{
		{"GET", "/api/machines", auth.RightRead, a.listMachines},
		{"GET", "/api/machines/{name}", auth.RightRead, a.getMachine},
		{"GET", "/api/machine-runs", auth.RightRead, a.listMachineRuns},
		{"POST", "/api/machine-runs", auth.RightWork, withBody(a.startMachine)},
		{"GET", "/api/machine-runs/{id}", auth.RightRead, a.getMachineRun},
		{"GET", "/api/machine-runs/{id}/events", auth.RightRead, a.machineEvents},
		{"GET", "/api/machine-runs/{id}/stream", auth.RightRead, a.machineStream},
		{"POST", "/api/machine-runs/{id}/input", auth.RightAnswer, withBody(a.machineInput)},
		{"POST", "/api/machine-runs/{id}/resume", auth.RightWork, withBody(a.resumeMachine)},
		{"POST", "/api/machine-runs/{id}/cancel", auth.RightWork, withBody(a.cancelMachine)},
		{"POST", "/api/machine-runs/{id}/fork", auth.RightWork, withBody(a.forkMachine)},
	}
}

// machineInfo describes a machine in a list.
type machineInfo struct {
	Name        string         `json:"name"`
	Description string         `json:"description"`
	Version     string         `json:"version,omitempty"`
	Inputs      []machineValue `json:"inputs"`
	Agents      []string       `json:"agents"`
	States      int            `json:"states"`
	Hash        string         `json:"hash,omitempty"`
	Source      string         `json:"source"`
	Path        string         `json:"path"`
	// Revision is the version of the source, such as a commit.
	Revision string `json:"revision,omitempty"`
	// Demo reports whether the machine has a recorded demonstration.
	Demo  bool `json:"demo"`
	Stale bool `json:"stale,omitempty"`
	// Problem is the reason why the machine does not load.
	Problem string `json:"error,omitempty"`
}

// machineValue describes an input of a machine.
type machineValue struct {
	Name        string          `json:"name"`
	Type        machinedef.Type `json:"type"`
	Description string          `json:"description"`
	Required    bool            `json:"required"`
	Default     json.RawMessage `json:"default,omitempty"`
	Options     []string        `json:"options,omitempty"`
}

func infoOf(e *catalog.MachineEntry) machineInfo {
	info := machineInfo{
		Name: e.Name, Source: e.Source.Name, Path: e.Path, Revision: e.Revision, Stale: e.Stale, Problem: e.Problem, Demo: e.HasRecording(),
		Inputs: []machineValue{}, Agents: []string{},
	}
	d := e.Definition
	if d == nil {
		return info
	}
	info.Description, info.Version, info.States, info.Hash = d.Description, d.Version, len(d.States), d.Hash
	for i := range d.Inputs {
		in := &d.Inputs[i]
		info.Inputs = append(info.Inputs, machineValue{in.Name, in.Type, in.Description, !in.Optional, in.Default, in.Options})
	}
	for i := range d.Agents {
		info.Agents = append(info.Agents, d.Agents[i].Role)
	}
	return info
}

func (a *api) listMachines(*call) (any, error) {
	list := lists.Map(a.Machines.Entries(), infoOf)
	return object{"machines": list}, nil
}

func (a *api) getMachine(c *call) (any, error) {
	e, err := a.Machines.Entry(c.PathValue("name"))
	if err != nil {
		return nil, err
	}
	return object{
		"machine": infoOf(e), "definition": json.RawMessage(e.Definition.Canonical), "ways": e.Definition.Edges(),
		"source": string(e.Files().Config.Data), "diagnostics": replaceNil(e.Lint()),
	}, nil
}

// machineRun is a run of a machine in a list.
type machineRun struct {
	RunID   string    `json:"runId"`
	Machine string    `json:"machine"`
	Goal    string    `json:"goal,omitempty"`
	Status  string    `json:"status"`
	State   string    `json:"state,omitempty"`
	Parent  string    `json:"parent,omitempty"`
	Person  bool      `json:"person,omitempty"`
	Created time.Time `json:"createdAt"`
	Updated time.Time `json:"updatedAt"`
}

func (a *api) listMachineRuns(c *call) (any, error) {
	limit := int(c.intParam("limit", listLimit, 1, maxListLimit))
	filter := run.Filter{Workflow: c.textParam("machine"), Before: c.cursorParam(), Limit: limit + 1}
	if c.err != nil {
		return nil, c.err
	}
	list, err := a.Machines.List(c.Context(), c.runCaller(), filter)
	if err != nil {
		return nil, err
	}
	out, rows := object{}, []machineRun{}
	for _, rec := range out.addNext(list, limit) {
		rows = append(rows, machineRun{
			RunID: rec.ID, Machine: rec.Workflow, Goal: rec.Goal, Status: rec.Title, State: rec.Step, Parent: rec.Parent, Person: rec.Person,
			Created: rec.Created, Updated: rec.Updated,
		})
	}
	out["runs"] = rows
	return out, nil
}

// startMachineBody is the request body that starts a run of a machine.
type startMachineBody struct {
	Machine string                     `json:"machine"`
	Inputs  map[string]json.RawMessage `json:"inputs"`
	Goal    string                     `json:"goal"`
	Demo    bool                       `json:"demo"`
	Project run.Project                `json:"project"`
}

func (a *api) startMachine(c *call, body startMachineBody) (any, error) {
	key, err := c.idempotencyKey()
	if err != nil {
		return nil, err
	}
	if body.Machine == "" {
		return nil, guideway.Errorf(guideway.CodeInvalid, "the body does not name a machine").WithFix(`set "machine" to a name from GET /api/machines`)
	}
	if body.Demo {
		if body.Inputs, err = a.demoInputs(body.Machine, body.Inputs); err != nil {
			return nil, err
		}
	}
	s, err := a.Machines.Start(c.Context(), c.runCaller(), driver.StartRequest{
		Machine: body.Machine, Inputs: body.Inputs, Goal: body.Goal, Project: body.Project, RequestID: key, Demo: body.Demo,
	})
	return c.answerCreatedMachineRun(s, err)
}

// demoInputs returns the inputs of a machine's recording. The given ones take precedence.
func (a *api) demoInputs(name string, given map[string]json.RawMessage) (map[string]json.RawMessage, error) {
	e, err := a.Machines.Entry(name)
	if err != nil {
		return nil, err
	}
	data, err := e.Recording()
	if err != nil {
		return nil, err
	}
	var demo struct {
		Inputs map[string]json.RawMessage `json:"inputs"`
	}
	if err := json.Unmarshal(data, &demo); err != nil {
		return nil, guideway.Errorf(guideway.CodeInvalidDefinition, "the recording of the machine %q is not valid: %w", name, err).
			WithFix("correct the JSON of the recording, or run the machine with a model")
	}
	if demo.Inputs == nil {
		demo.Inputs = map[string]json.RawMessage{}
	}
	for key, value := range given {
		demo.Inputs[key] = value
	}
	return demo.Inputs, nil
}

func (c *call) answerCreatedMachineRun(s *driver.Status, err error) (any, error) {
	if err != nil {
		return nil, err
	}
	c.setCreated("/api/machine-runs/", s.RunID)
	return object{"run": s}, nil
}

func (a *api) getMachineRun(c *call) (any, error) {
	v, err := a.Machines.View(c.Context(), c.runCaller(), c.PathValue("id"))
	if err != nil {
		return nil, err
	}
	return object{
		"run": v.Status, "conversations": v.Conversations, "data": v.Data, "definition": v.Definition, "ways": v.Ways, "limits": v.Limits,
	}, nil
}

func (a *api) machineEvents(c *call) (any, error) {
	after := c.intParam("after", 0, 0, 1<<53)
	limit := c.intParam("limit", eventLimit, 1, maxEventLimit)
	if c.err != nil {
		return nil, c.err
	}
	all, err := a.Machines.Events(c.Context(), c.runCaller(), c.PathValue("id"))
	if err != nil {
		return nil, err
	}
	out, events, bytes := object{}, []run.Event{}, 0
	for _, e := range all {
		if e.Seq <= after {
			continue
		}
		if bytes += len(e.Data); int64(len(events)) == limit || bytes > maxEventBytes && len(events) > 0 {
			out["nextAfter"] = events[len(events)-1].Seq
			break
		}
		events = append(events, e)
	}
	out["events"] = events
	return out, nil
}

// machineInputBody is an input value, or the outcome of a call. Question identifies what it
// answers.
type machineInputBody struct {
	Question string                 `json:"question"`
	Value    json.RawMessage        `json:"value"`
	Outcome  machineengine.Decision `json:"outcome"`
	Result   string                 `json:"result"`
}

// machineInput sends the input that a run waits for, or the outcome of an interrupted call,
// to the run. Only the credential decides whether the input counts as a person's.
func (a *api) machineInput(c *call, body machineInputBody) (any, error) {
	if body.Outcome != "" {
		s, err := a.Machines.Decide(c.Context(), c.runCaller(), c.PathValue("id"), driver.OutcomeAnswer{Question: body.Question, Decision: body.Outcome, Result: body.Result})
		return object{"run": s}, err
	}
	s, err := a.Machines.Input(c.Context(), c.runCaller(), c.PathValue("id"), driver.InputAnswer{Question: body.Question, Value: body.Value})
	return object{"run": s}, err
}

// resumeBody is the body of resumeMachine.
type resumeBody struct {
	machineengine.Limits
	// AcceptTools continues the run with the present tools and hook graphs.
	AcceptTools bool `json:"acceptTools"`
}

func (a *api) resumeMachine(c *call, body resumeBody) (any, error) {
	limits := body.Limits
	if limits.States < 0 || limits.Calls < 0 || limits.Tokens < 0 || limits.Cost < 0 || limits.Millis < 0 || limits.ToolCalls < 0 {
		return nil, guideway.Errorf(guideway.CodeInvalid, "one of the budgets states, calls, tokens, cost, millis and toolCalls is negative").WithFix("set each budget to a new total that is not negative, or omit the budget")
	}
	if body.AcceptTools {
		if _, err := a.Machines.AcceptTools(c.Context(), c.runCaller(), c.PathValue("id")); err != nil {
			return nil, err
		}
	}
	s, err := a.Machines.Resume(c.Context(), c.runCaller(), c.PathValue("id"), limits)
	return object{"run": s}, err
}

func (a *api) cancelMachine(c *call, body reasonBody) (any, error) {
	s, err := a.Machines.Cancel(c.Context(), c.runCaller(), c.PathValue("id"), body.Reason)
	return object{"run": s}, err
}

func (a *api) forkMachine(c *call, body forkBody) (any, error) {
	if err := body.checkSeq(); err != nil {
		return nil, err
	}
	s, err := a.Machines.Fork(c.Context(), c.runCaller(), c.PathValue("id"), body.Seq)
	return c.answerCreatedMachineRun(s, err)
}

const (
	// machinePollInterval is how often a stream polls a run that another process may
	// execute. machineSendInterval is the shortest time between two statuses.
	machinePollInterval = time.Second
	machineSendInterval = 250 * time.Millisecond
)

// machineDelta is a piece of an agent's text, or the name of a tool that it starts to call.
type machineDelta struct {
	RunID string `json:"runId"`
	State string `json:"state"`
	Agent string `json:"agent"`
	Text  string `json:"text,omitempty"`
	Tool  string `json:"tool,omitempty"`
}

// machineStream streams the progress of a run: its status after each change, and the text of
// its agents as it arrives. The instance that executes the run streams it. If another instance
// takes the run over, the stream ends, so that the reader connects again.
func (a *api) machineStream(c *call) (any, error) {
	id, by := c.PathValue("id"), c.runCaller()
	first, err := a.Machines.Status(c.Context(), by, id)
	if err != nil {
		return nil, err
	}
	var answer any = responseWritten{}
	local := func(w http.ResponseWriter) { answer, err = a.streamMachine(c, first) }
	if a.ForwardTo == nil {
		local(c.w)
	} else {
		a.ForwardTo(c.w, c.Request, first.Driver, local)
	}
	return answer, err
}

// streamMachine is machineStream in this process, from a status on.
func (a *api) streamMachine(c *call, first *driver.Status) (any, error) {
	id, by := first.RunID, c.runCaller()
	release, err := a.streams.reserveStream(by.User)
	if err != nil {
		return nil, err
	}
	defer release()
	updates, cancel := a.Machines.Watch(id)
	defer cancel()
	ctx, end := a.streamContext(c)
	defer end()
	s := &machineFollower{
		out: newStream(c.w), updates: updates,
		status: func(ctx context.Context) (*driver.Status, error) { return a.Machines.Status(ctx, by, id) },
		moved: func(driver string) bool {
			return a.ForwardTo != nil && driver != "" && driver != first.Driver && driver != a.Instance
		},
	}
	if s.sendStatus(first) == nil {
		// An error means that the reader has disconnected or the process ends.
		_ = s.followRun(ctx)
	}
	return responseWritten{}, nil
}

// machineFollower copies the progress of one run into a stream.
type machineFollower struct {
	out     *stream
	updates <-chan driver.Update
	status  func(context.Context) (*driver.Status, error)
	seq     int64
	// moved reports whether an instance that executes the run serves the stream better.
	moved func(driver string) bool
}

func (f *machineFollower) sendStatus(s *driver.Status) error {
	f.seq = s.Seq
	if err := f.out.addEvent("status", s.Seq, s); err != nil {
		return err
	}
	return f.out.flushEvents()
}

// followRun copies the progress until the context is done or the reader disconnects.
func (f *machineFollower) followRun(ctx context.Context) error {
	look, alive := time.NewTicker(machinePollInterval), time.NewTicker(keepalive)
	defer look.Stop()
	defer alive.Stop()
	var due <-chan time.Time
	for ctx.Err() == nil {
		select {
		case <-ctx.Done():
			return nil
		case u := <-f.updates:
			if u.Event != nil {
				if due == nil {
					due = time.After(machineSendInterval)
				}
				continue
			}
			if err := f.sendDeltas(u); err != nil {
				return err
			}
			continue
		case <-alive.C:
			f.out.addKeepalive(f.seq)
			if err := f.out.flushEvents(); err != nil {
				return err
			}
			continue
		case <-look.C:
		case <-due:
			due = nil
		}
		s, err := f.status(ctx)
		if err != nil {
			return err
		}
		if s.Seq != f.seq || s.Child != nil {
			if err := f.sendStatus(s); err != nil {
				return err
			}
		}
		if f.moved(s.Driver) {
			return nil
		}
	}
	return nil
}

// sendDeltas sends a delta and all that are queued after it.
func (f *machineFollower) sendDeltas(u driver.Update) error {
	for {
		if u.Event == nil {
			d := machineDelta{u.RunID, u.State, u.Agent, u.Delta.Text, u.Delta.Tool}
			if err := f.out.addEvent("delta", f.seq, d); err != nil {
				return err
			}
		}
		if len(f.updates) == 0 {
			return f.out.flushEvents()
		}
		u = <-f.updates
	}
}
