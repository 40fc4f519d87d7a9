package workflow

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"slices"
	"time"
)

// target is a program to measure.
type target struct {
	name    string
	command []string
	dir     string
	env     []string
	// echoes is set if a client can send the returned context back.
	echoes bool
	// mustKill is set if the program ends only when killed.
	mustKill bool
}

// withEnv returns the target with additional variables, which override existing ones.
func (t *target) withEnv(env ...string) *target {
	c := *t
	c.env = slices.Concat(t.env, env)
	return &c
}

// server is a running target that answers on its standard output.
type server struct {
	target  *target
	cmd     *exec.Cmd
	in      io.WriteCloser
	out     *bufio.Reader
	errors  bytes.Buffer
	version protocolVersion
	lastID  int
	// started is the time just before the process was created.
	started time.Time
}

// startServer starts a target. The end of ctx kills it, so that reads do not block forever.
func (t *target) startServer(ctx context.Context, v protocolVersion) (*server, error) {
	s := &server{target: t, version: v}
	s.cmd = exec.CommandContext(ctx, t.command[0], t.command[1:]...) //nolint:gosec // the program to measure
	s.cmd.Dir, s.cmd.Env, s.cmd.Stderr = t.dir, t.env, &s.errors
	s.cmd.WaitDelay = time.Second
	in, err := s.cmd.StdinPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", t.name, err)
	}
	out, err := s.cmd.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("start %s: %w", t.name, err)
	}
	s.in, s.out = in, bufio.NewReaderSize(out, 1<<20)
	s.started = time.Now()
	if err := s.cmd.Start(); err != nil {
		return nil, fmt.Errorf("start %s: %w", t.name, err)
	}
	return s, nil
}

// stop ends the process and returns its total CPU time.
func (s *server) stop() time.Duration {
	_ = s.in.Close()
	if s.target.mustKill {
		_ = s.cmd.Process.Kill()
	}
	patience := time.AfterFunc(3*time.Second, func() { _ = s.cmd.Process.Kill() })
	defer patience.Stop()
	_ = s.cmd.Wait()
	return s.cmd.ProcessState.UserTime() + s.cmd.ProcessState.SystemTime()
}

// callTool sends a request and waits for its answer. The duration ends when the answer has
// arrived, before it is decoded. The call does not watch its context: it ends early only if
// the process ends.
func (s *server) callTool(_ context.Context, method string, params map[string]any) (json.RawMessage, time.Duration, error) {
	s.lastID++
	line, err := newRequest(s.version, s.lastID, method, params)
	if err != nil {
		return nil, 0, err
	}
	began := time.Now()
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		return nil, 0, s.callError(method, err)
	}
	for {
		answer, err := s.out.ReadBytes('\n')
		took := time.Since(began)
		if err != nil {
			return nil, 0, s.callError(method, err)
		}
		// Other lines are notifications, or not JSON.
		if result, ok, err := readAnswer(answer, s.lastID); ok || err != nil {
			return result, took, err
		}
	}
}

// initializeSession sends the first messages of a client of protocol version 2025-11-25.
// Later versions have none.
func (s *server) initializeSession(ctx context.Context) error {
	if s.version == modern {
		return nil
	}
	if _, _, err := s.callTool(ctx, "initialize", initializeParams()); err != nil {
		return err
	}
	line, err := newNotification("notifications/initialized")
	if err != nil {
		return err
	}
	if _, err := s.in.Write(append(line, '\n')); err != nil {
		return s.callError("notifications/initialized", err)
	}
	return nil
}

func (s *server) callError(method string, err error) error {
	const most = 2000
	said := bytes.TrimSpace(s.errors.Bytes())
	return fmt.Errorf("%s of %s: %w\n%s", method, s.target.name, err, said[max(0, len(said)-most):])
}

// processID returns the id of the server's process.
func (s *server) processID() int { return s.cmd.Process.Pid }

// fileSize returns the size of the program's file.
func (t *target) fileSize() (int64, error) {
	info, err := os.Stat(t.command[0])
	if err != nil {
		return 0, fmt.Errorf("read the size of the program: %w", err)
	}
	return info.Size(), nil
}
