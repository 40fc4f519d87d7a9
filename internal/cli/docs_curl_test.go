package cli

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// runCurl implements the command curl for the scripts, because curl is not on every
// machine. It supports the flags that the documentation uses and returns an error for all
// others.
func runCurl(args []string) error {
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
		case "--retry": // curl retries a few times; this retries until the server listens
			_ = value()
			wait = true
		case "-s":
		default:
			if strings.HasPrefix(flag, "-") || address != "" {
				return fmt.Errorf("the curl for tests does not support the flag %s", flag)
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
		request, err := http.NewRequest(method, address, strings.NewReader(body)) //nolint:noctx // the process ends with the request
		if err != nil {
			return err
		}
		request.Header = header
		response, err := http.DefaultClient.Do(request)
		if err != nil && wait {
			<-time.After(20 * time.Millisecond) // only connecting shows whether the server listens
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
