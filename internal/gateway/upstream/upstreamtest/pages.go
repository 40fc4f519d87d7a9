package upstreamtest

import (
	"encoding/json"
	"strings"
)

// Pages is a server with the tool "show", which has a page for hosts, and with another page
// that is not in the server's lists. The contents of each page begin with the value of
// PageVariable.
const Pages = "pages"

// PageVariable is the environment variable with the beginning of all pages.
const PageVariable = "UPSTREAMTEST_PAGE"

const pageMeta = `"_meta":{"ui":{"resourceUri":"ui://chart/view.html","prefersBorder":true},"ui/resourceUri":"ui:\/\/chart\/view.html","other/template":"ui://unlisted/page.html","note":"see ui://chart/view.html"}`

func pageTool() string { return `{"name":"show",` + pageMeta + `,` + schema + `}` }

func (s *Server) callShow(m message) {
	s.sendAnswer(m.ID, `{"content":[{"type":"resource_link","name":"v","uri":"ui://chart/view.html"},`+
		`{"type":"resource","resource":{"uri":"ui://chart/view.html","text":"ui://chart/view.html"}}],`+pageMeta+`}`)
}

const pageResource = `{"resources":[{"uri":"ui://chart/view.html","name":"view","mimeType":"text/html;profile=mcp-app"}]}`

// readPage answers a read of a page, and reports whether the resource is a page.
func (s *Server) readPage(m message) bool {
	var p struct{ URI string }
	_ = json.Unmarshal(m.Params, &p)
	if p.URI != "ui://chart/view.html" && p.URI != "ui://unlisted/page.html" {
		return false
	}
	begin := ""
	for _, each := range s.Environ {
		if value, ok := strings.CutPrefix(each, PageVariable+"="); ok {
			begin = value
		}
	}
	s.sendAnswer(m.ID, `{"contents":[{"uri":`+string(quoteText(p.URI))+`,"text":`+string(quoteText(begin+" "+p.URI))+`}]}`)
	return true
}
