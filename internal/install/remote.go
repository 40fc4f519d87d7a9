package install

import (
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/guideway-dev/guideway"
	"github.com/guideway-dev/guideway/internal/platform/ssrf"
)

const (
	// authorizationHeader is the header with the bearer token.
	authorizationHeader = "Authorization"
	// connectCommand is the command of Guideway that a client starts to reach a URL.
	connectCommand = "connect"
	// connectToken is the variable from which that command reads the token.
	connectToken = "GUIDEWAY_TOKEN"
)

// NeedsToken reports whether the client cannot refer to an environment variable, so that the
// value of the token is written into its file.
func (c Client) NeedsToken() bool { return c.Reference == "" }

// Bridged reports whether the client only starts programs, so that it reaches a URL through
// guideway connect.
func (c Client) Bridged() bool { return c.Bridge }

// newEntry returns the entry of a request, and whether it contains a token.
func (c Client) newEntry(req Request) (e Entry, secret bool, err error) {
	if req.URL == "" {
		e = Entry{Command: req.Command, Args: req.Args, Env: req.Env}
		if len(e.Args) == 0 {
			e.Args = mcpArgs()
		}
		return e, false, nil
	}
	if req.TokenEnv != "" && c.NeedsToken() && req.Token == "" {
		return e, false, guideway.Errorf(guideway.CodeInvalid, "the configuration of %s must contain the token itself, but %s is not set", c.Title, req.TokenEnv).
			WithFix("set %s to the token, then run the same command again: the token is written into the file, which only you can read", req.TokenEnv)
	}
	if c.Bridge {
		return connectEntry(req), req.Token != "", nil
	}
	e = Entry{URL: req.URL}
	switch {
	case req.TokenEnv == "":
	case c.NeedsToken():
		e.Authorization, secret = "Bearer "+req.Token, true
	default:
		e.Authorization = fmt.Sprintf(c.Reference, req.TokenEnv)
	}
	return e, secret, nil
}

// connectEntry returns the entry that starts guideway connect in place of guideway mcp.
func connectEntry(req Request) Entry {
	args := req.Args
	if len(args) == 0 {
		args = mcpArgs()
	}
	e := Entry{Command: req.Command, Env: maps.Clone(req.Env)}
	e.Args = append(slices.Clone(args[:len(args)-1]), connectCommand, "--url", req.URL)
	if req.Token != "" {
		e.Env = mergeVariables(e.Env, map[string]string{connectToken: req.Token})
	}
	return e
}

// entryNotes returns what a person must know about the token of an entry.
func (c Client) entryNotes(req Request, secret bool) []string {
	if req.URL == "" {
		return nil
	}
	var notes []string
	u, err := url.Parse(req.URL)
	remote := err == nil && !ssrf.IsLoopback(u.Hostname())
	switch {
	case secret:
		notes = append(notes, fmt.Sprintf("the file contains the value of %s, because %s cannot refer to an environment variable; only you can read the file, unless %s changes its permissions", req.TokenEnv, c.Title, c.Title))
	case req.TokenEnv != "":
		notes = append(notes, fmt.Sprintf("%s reads the token from the environment variable %s when it starts", c.Title, req.TokenEnv))
	case !c.Bridge || remote:
		notes = append(notes, "the entry has no token; add one with --token-env NAME if the server answers 401")
	}
	if remote && u.Scheme == "http" {
		notes = append(notes, "the connection is not encrypted: use https for a server on another machine")
	}
	return notes
}

// checkURL returns an error if a URL is not the address of a server.
func checkURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" || u.User != nil || strings.ContainsAny(text, "$ \t\r\n\"'`{}") {
		return guideway.Errorf(guideway.CodeInvalid, "%q is not the URL of a server (it must have http or https and a host, and no user name, space, quote, $ or brace)", text).
			WithFix("use --url http://127.0.0.1:3000/mcp")
	}
	return nil
}

// CheckTokenEnv returns an error if a text is not the name of an environment variable.
func CheckTokenEnv(name string) error {
	for i, r := range name {
		letter := r == '_' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z'
		if !letter && (i == 0 || r < '0' || r > '9') {
			return guideway.Errorf(guideway.CodeInvalid, "--token-env takes the name of an environment variable; a token is never an argument").
				WithFix("put the token into a variable and name it: --token-env GUIDEWAY_TOKEN")
		}
	}
	return nil
}
