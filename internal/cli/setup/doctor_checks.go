package setup

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"runtime"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/catalog"
	"github.com/guideway-dev/guideway/internal/catalog/git"
	"github.com/guideway-dev/guideway/internal/cli/app"
	hookscmd "github.com/guideway-dev/guideway/internal/cli/hooks"
	installcmd "github.com/guideway-dev/guideway/internal/cli/install"
	"github.com/guideway-dev/guideway/internal/cli/server"
	sourcescmd "github.com/guideway-dev/guideway/internal/cli/sources"
	"github.com/guideway-dev/guideway/internal/config"
	"github.com/guideway-dev/guideway/internal/evidence/checksfile"
	"github.com/guideway-dev/guideway/internal/evidence/execute/worktree"
	gatewayadmin "github.com/guideway-dev/guideway/internal/gateway/admin"
	"github.com/guideway-dev/guideway/internal/gateway/upstream"
	"github.com/guideway-dev/guideway/internal/hooks/sandbox"
	"github.com/guideway-dev/guideway/internal/httpapi/auth"
	"github.com/guideway-dev/guideway/internal/install"
)

// indented is a writer that indents the lines below a check.
type indented struct{ w io.Writer }

// Write implements io.Writer. Each call must contain whole lines.
func (i indented) Write(p []byte) (int, error) {
	for line := range bytes.Lines(p) {
		if _, err := fmt.Fprintf(i.w, "      %s", line); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// checkDirectories checks the directories of the user.
func checkDirectories(cfg *config.Config) []Check {
	return []Check{
		checkConfigFiles(cfg),
		checkDataFiles(cfg),
	}
}

func checkDirectory(name, path, missing string) Check {
	c := Check{Name: name, Status: CheckOK, Message: path}
	if path == "" {
		c.Status, c.Message = CheckFail, "not defined by the environment"
		c.Fix = "set HOME (USERPROFILE on Windows)"
		return c
	}
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		c.Message += " (missing; " + missing + ")"
	case err != nil:
		c.Status, c.Message, c.Fix = CheckFail, app.ReadError(path, err).Error(), "make the directory readable and writable for this user"
	case !info.IsDir():
		c.Status, c.Message, c.Fix = CheckFail, path+" is not a directory", "move or remove the existing file"
	}
	return c
}

// checkDefinitions checks the sources and reports definitions that did not load.
func (o *DoctorOptions) checkDefinitions(ctx context.Context, cfg *config.Config) ([]Check, error) {
	cat, err := o.app.OpenCatalog(ctx, cfg, false)
	if err != nil {
		return nil, err
	}
	defer cat.Close()
	snap := cat.Snapshot()
	var checks []Check
	for _, row := range sourcescmd.SourceRows(cat) {
		checks = append(checks, checkSource(row))
	}
	linted, err := snap.Lint(ctx)
	if err != nil {
		return nil, app.InterruptedError(err)
	}
	served := len(snap.List(catalog.Filter{}))
	c := Check{Name: "definitions", Status: CheckOK, Message: fmt.Sprintf("%d served, all files load", served)}
	// An error that only the linter detects, such as a pattern that does not compile, would
	// stop an agent during a run.
	diagnostics := slices.Concat(snap.Diagnostics(), app.FilterErrors(linted))
	if len(diagnostics) > 0 {
		c.Status, c.Diagnostics = worstSeverity(diagnostics), diagnostics
		c.Message = fmt.Sprintf("%d served, %s", served, app.CountDiagnostics(diagnostics))
		c.Fix = "fix the files; guideway validate FILE checks one"
	}
	checks = append(checks, c)
	if !o.Lint {
		return checks, nil
	}
	c = Check{Name: "lint", Status: CheckOK, Message: "no likely mistakes"}
	if len(linted) > 0 {
		c.Status, c.Message, c.Diagnostics = worstSeverity(linted), app.CountDiagnostics(linted), linted
	}
	return append(checks, c), nil
}

func worstSeverity(diagnostics []guideway.Diagnostic) string {
	if len(app.FilterErrors(diagnostics)) > 0 {
		return CheckFail
	}
	return CheckWarn
}

func checkSource(r sourcescmd.SourceRow) Check {
	c := Check{Name: "source " + r.Name, Status: CheckOK, Message: fmt.Sprintf("%d served", r.Served)}
	if r.Location != "" {
		c.Message += ", " + r.Location
	}
	if r.Shadowed > 0 {
		c.Message += fmt.Sprintf(", %d shadowed", r.Shadowed)
	}
	switch {
	case r.State == catalog.SourceFailed:
		c.Status, c.Message = CheckFail, strings.TrimPrefix(r.Location+": "+r.Error, ": ")
		switch {
		case r.Kind == "npm":
			c.Fix = "fix or remove the npm package " + r.Name
		case r.Sync != nil:
			c.Fix = "guideway sources sync " + r.Name + ", to try again"
		case r.Trust == catalog.TrustRemote:
			c.Fix = "correct the source in the setting sources"
		default:
			c.Fix = "make the location of the source a readable directory"
		}
	case r.State == catalog.SourceMissing && !r.Optional:
		c.Status, c.Message = CheckFail, r.Location+" does not exist"
		c.Fix = "create the directory, or remove it from the setting workflows.paths"
	case r.State == catalog.SourceMissing:
		c.Message = r.Location + " (missing, optional)"
	}
	return c
}

// CheckGit checks the git program, which fetches repositories.
func CheckGit(ctx context.Context, cfg *config.Config) Check {
	version, err := git.Version(ctx)
	if err == nil {
		return Check{Name: "git", Status: CheckOK, Message: "version " + version}
	}
	c := Check{Name: "git", Status: CheckWarn, Message: err.Error() + "; no source needs Git", Fix: guideway.ErrorFix(err)}
	if slices.ContainsFunc(cfg.Sources, func(s config.Source) bool { return s.Git != "" && !s.Disabled }) {
		c.Status, c.Message = CheckFail, err.Error()+"; repositories are served from their last copy"
	}
	return c
}

// checkSandbox starts a script worker to check whether this machine or container supports
// all isolation.
func checkSandbox(ctx context.Context) Check {
	c := Check{Name: "script sandbox", Status: CheckOK, Message: SandboxText(runtime.GOOS)}
	missing := ""
	err := hookscmd.WithPool(ctx, func(pool *sandbox.Pool) error {
		err := pool.Warm(ctx)
		missing = pool.Missing()
		return err
	})
	return SandboxFound(c, missing, err)
}

// SandboxText describes the isolation of workers that start on a system.
func SandboxText(system string) string {
	if system == "linux" {
		return "workers start with full isolation"
	}
	return "workers start with the limits of the engine; the kernel confines them only on Linux"
}

// SandboxFound adds the result of starting a script worker to a check.
func SandboxFound(c Check, missing string, err error) Check {
	switch {
	case err != nil:
		c.Status, c.Message, c.Fix = CheckFail, "workers cannot start; hooks and machines cannot run: "+err.Error(), cmp.Or(guideway.ErrorFix(err), "allow this user to start the Guideway program")
	case missing != "":
		c.Status, c.Message = CheckWarn, "workers run without the system call filter ("+missing+"); all other isolation is active"
		c.Fix = "allow seccomp filters on this computer or in its container; docs/scripts.md describes the isolation without them"
	}
	return c
}

// checkUser checks the name of the owner of runs and handles.
func checkUser(cfg *config.Config) Check {
	name, err := app.LocalUser(cfg)
	if err != nil {
		return Check{Name: "user", Status: CheckFail, Message: err.Error(), Fix: guideway.ErrorFix(err)}
	}
	return Check{Name: "user", Status: CheckOK, Message: name}
}

// checkToken checks the token file without creating one.
func checkToken(cfg *config.Config) Check {
	c := Check{Name: "token", Status: CheckOK, Message: cfg.TokenFile}
	if cfg.TokenFile == "" {
		c.Message = "not checked: the data directory is unknown"
		return c
	}
	if _, err := os.Lstat(cfg.TokenFile); errors.Is(err, fs.ErrNotExist) {
		c.Message += " (missing; created by guideway serve)"
		return c
	}
	if _, _, err := auth.LoadOrCreateToken(cfg.TokenFile); err != nil {
		c.Status, c.Message, c.Fix = CheckFail, err.Error(), guideway.ErrorFix(err)
	}
	return c
}

// CheckServer checks whether a server uses the data directory or answers on the listen
// address. A missing server is not an error: clients start their own.
func CheckServer(ctx context.Context, cfg *config.Config) Check {
	c := Check{Name: "server", Status: CheckOK}
	if address, ok := server.FindLiveServer(ctx, cfg); ok {
		c.Message = "Guideway answers at http://" + address + ", on this data directory"
		return c
	}
	host, port, err := net.SplitHostPort(cfg.Listen)
	if err != nil || port == "0" {
		c.Message = "not checked: the setting listen is " + cfg.Listen + ", without a fixed port"
		return c
	}
	if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
		host = "127.0.0.1"
	}
	url := "http://" + net.JoinHostPort(host, port)
	ctx, cancel := context.WithTimeout(ctx, app.ServerProbeTimeout)
	defer cancel()
	switch ours, err := server.CheckHealth(ctx, url+"/api/health"); {
	case ours:
		c.Message = "Guideway answers at " + url
	case refusedConnection(err):
		c.Message = "no server at " + url + " (to start a server: guideway serve; local clients need no server)"
	default:
		c.Status, c.Message = CheckWarn, "the server at "+url+" is not Guideway"
		if err != nil {
			c.Message = "the server at " + url + " does not answer: " + err.Error()
		}
		c.Fix = "guideway serve --listen 127.0.0.1:3001, or stop the program that listens at " + url
	}
	return c
}

// refusedConnection reports whether no connection was opened, usually because no program
// listens on the address.
func refusedConnection(err error) bool {
	var op *net.OpError
	return errors.As(err, &op) && op.Op == "dial" && !op.Timeout()
}

// checkClients checks the clients on this machine.
func checkClients(ctx context.Context, host *app.Host) []Check {
	o := &installcmd.InstallOptions{Host: host, Scope: string(install.ScopeUser), Name: install.DefaultName, GOOS: runtime.GOOS, Executable: os.Executable}
	req, _ := o.Request() // listing does not need the path of the binary
	var checks []Check
	var here []string
	installed := false
	for _, client := range install.Clients() {
		s := install.Inspect(ctx, o.Host.InstallEnv(o.GOOS), client, install.ScopeUser, req)
		c := Check{Name: "client " + client.ID, Status: CheckOK, Message: string(s.State) + ", " + s.Path}
		switch s.State {
		case install.StateNoClient:
			continue
		case install.StateNotInstalled:
			here = append(here, client.ID)
			continue
		case install.StateOtherPath:
			c.Status, c.Message = CheckWarn, "starts "+s.Command+", a different program"
			c.Fix = "guideway install " + client.ID
		case install.StateUnreadable:
			c.Status, c.Message = CheckWarn, strings.TrimSpace(s.Path+" is unreadable: "+s.Reason)
			c.Fix = "fix the file, then guideway install " + client.ID
		}
		installed = installed || s.State == install.StateInstalled || s.State == install.StateOtherPath
		checks = append(checks, c)
	}
	if installed {
		return checks
	}
	c := Check{Name: "clients", Status: CheckWarn, Message: "no client starts Guideway", Fix: "guideway install CLIENT; guideway install lists the clients"}
	if len(here) > 0 {
		c.Fix = "guideway install " + here[0]
		c.Message += "; clients found: " + strings.Join(here, ", ")
	}
	return append(checks, c)
}

// checkChecksFile checks the checks of the project in the working directory and their
// approvals. It executes nothing.
func (o *DoctorOptions) checkChecksFile(cfg *config.Config) []Check {
	root, err := worktree.Root(o.app.Host.Dir)
	if err != nil {
		return nil
	}
	file := checksfile.Load(root)
	approved, err := app.ReadApprovals(cfg, o.app.Host.CurrentTime)
	if err != nil {
		return []Check{{Name: "checks", Status: CheckFail, Message: "the approvals cannot be read, so no check counts as approved: " + err.Error(), Fix: guideway.ErrorFix(err)}}
	}
	removed := file.Removed(root, approved)
	if !file.Exists && len(removed) == 0 {
		return nil
	}
	c := Check{Name: "checks", Status: CheckOK, Message: fmt.Sprintf("%d usable", len(file.Checks)), Diagnostics: file.Diagnostics}
	if len(file.Checks)+len(file.Broken) == 0 && len(file.Diagnostics) > 0 {
		c.Message = "the checks file cannot be used"
	}
	waiting := len(removed)
	for i := range file.Checks {
		subject, err := checksfile.NewSubject(root, &file.Checks[i])
		if err == nil {
			err = subject.CheckApproved(approved)
		}
		if err != nil {
			waiting++
		}
	}
	if len(file.Broken) > 0 {
		c.Message += fmt.Sprintf(", %d with errors", len(file.Broken))
	}
	if waiting > 0 {
		c.Status, c.Fix = CheckWarn, "guideway checks approve"
		c.Message += fmt.Sprintf(", %d waiting for approval", waiting)
	}
	if len(removed) > 0 {
		c.Message += "; no longer defined: " + strings.Join(removed, ", ")
	}
	if len(file.Diagnostics) > 0 {
		c.Status = worstSeverity(file.Diagnostics)
	}
	return []Check{c}
}

// checkUpstreams checks the upstreams without starting them: one check for all, and one for
// each that needs attention.
func (o *DoctorOptions) checkUpstreams(cfg *config.Config) []Check {
	if len(cfg.Upstreams) == 0 {
		return nil
	}
	all := Check{Name: "upstreams", Status: CheckOK, Message: fmt.Sprintf("%d configured", len(cfg.Upstreams))}
	counts := map[string]int{}
	var checks []Check
	managed := server.NewOfflineUpstreamAdmin(o.app, cfg)
	for _, u := range cfg.Upstreams {
		row := managed.Summarize(u, "")
		state := server.FormatUpstreamState(&row)
		c := Check{Name: "upstream " + u.Name, Status: CheckWarn, Message: state, Fix: "guideway upstream approve " + u.Name}
		switch {
		case row.Problem != "":
			c.Status, c.Fix = CheckFail, "fix the upstream in "+u.Origin.String()
			state = "invalid"
		case u.Disabled:
			counts[state]++
			continue
		case row.Waiting > 0:
			state = "waiting for approval"
		default:
			counts[state]++
			secrets := upstream.Secrets{Getenv: o.app.Host.Getenv, Keychain: skipKeychain}
			err := secrets.Check(gatewayadmin.EntryOf(u).Spec)
			if err == nil {
				continue
			}
			c.Message, c.Fix = err.Error(), guideway.ErrorFix(err)
			checks = append(checks, c)
			continue
		}
		counts[state]++
		checks = append(checks, c)
	}
	for _, state := range []string{"ready", "not queried yet", "waiting for approval", "disabled", "invalid"} {
		if n := counts[state]; n > 0 {
			all.Message += fmt.Sprintf(", %d %s", n, state)
		}
	}
	if !cfg.OffersUpstreams() {
		all.Message += `; agents see upstreams only on servers started with the toolset "gateway", which is disabled in the settings`
	}
	all.Message = strings.Replace(all.Message, "configured, ", "configured: ", 1)
	return append([]Check{all}, checks...)
}

// skipKeychain replaces the system keychain, which may ask the user for permission: the
// secret is not needed here.
func skipKeychain(string) (string, error) { return "in the keychain", nil }
