package cli

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// curl stands for the program of that name, which is not on every machine: the flags
// that the documentation uses, and an error for all others.
func curl(args []string) error {
	method, address, body := "", "", ""
	header := http.Header{}
	wait := false
	for i := 0; i < len(args); i++ {
		value := func() string { i++; return args[min(i, len(args)-1)] }
		switch flag := args[i]; flag {
		case "-H":
			name, text, _ := strings.Cut(value(), ": ")
			header.Set(name, text)
		case "-X":
			method = value()
		case "-d":
			body = value()
		case "--retry": // here, until somebody listens
			_ = value()
			wait = true
		case "-s":
		default:
			if strings.HasPrefix(flag, "-") || address != "" {
				return fmt.Errorf("the curl of the tests does not know %s", flag)
			}
			address = flag
		}
	}
	if method == "" {
		method = http.MethodGet
		if body != "" {
			method = http.MethodPost
		}
	}
	for {
		request, err := http.NewRequest(method, address, strings.NewReader(body)) //nolint:noctx // the process ends with it
		if err != nil {
			return err
		}
		request.Header = header
		response, err := http.DefaultClient.Do(request)
		if err != nil && wait {
			<-time.After(20 * time.Millisecond) // there is nothing to wait for but the port itself
			continue
		}
		if err != nil {
			return err
		}
		defer response.Body.Close()
		_, err = io.Copy(os.Stdout, response.Body)
		return err
	}
}

// request sends a request of the documentation to the server, as an agent: request
// METHOD PATH BODY. The server may know nothing of what it names, or want a person; it
// must understand it.
func request(ts *testscript.TestScript, _ bool, args []string) {
	token := ts.ReadFile(ts.Getenv("XDG_DATA_HOME") + "/guideway/token")
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel() // a stream ends with it
	r, err := http.NewRequestWithContext(ctx, args[0], "http://"+ts.Getenv("GUIDEWAY_LISTEN")+args[1], strings.NewReader(args[2]))
	ts.Check(err)
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(token))
	if args[2] != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	response, err := http.DefaultClient.Do(r)
	ts.Check(err)
	defer response.Body.Close()
	ts.Logf("%d", response.StatusCode)
	if !slices.Contains([]int{200, 201, 202, 401, 403, 404, 409, 422, 503}, response.StatusCode) {
		body, _ := io.ReadAll(response.Body)
		ts.Fatalf("%s %s: %d %s", args[0], args[1], response.StatusCode, body)
	}
}
