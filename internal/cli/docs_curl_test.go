package cli

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"time"
)

// runCurl replaces the program of that name, which is not on every machine. It supports the
// flags in the documentation and returns an error for all others.
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
		case "--retry": // here, until the server listens
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
			<-time.After(20 * time.Millisecond) // only the port itself shows it
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
