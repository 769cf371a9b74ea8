// SPDX-License-Identifier: Apache-2.0

package demo

import (
	"fmt"
	"io"
	"os"
)

// sampleReview is the review that the printed curl command sends.
const sampleReview = "review.json"

// printNext says what to do next.
func (s *stage) printNext(w io.Writer, address, statusPage string, staying bool) {
	if !staying {
		_, _ = fmt.Fprint(w, `
Next:
  dispatcher demo                  on a terminal: stays up to be tried with curl, and with its status page
  examples/quickstart/             the manifests that were served
  docs/configuration.md            how to run it for real: dispatcher serve --config FILE
`)
		return
	}
	body, err := review(create(pod("shop", "web", "registry.example.com/web:latest")), "tried-by-hand")
	if err == nil {
		err = os.WriteFile(s.path(sampleReview), body, 0o600)
	}
	if err != nil {
		_, _ = fmt.Fprintf(w, "cannot write a sample review: %v\n", err)
		return
	}
	_, _ = fmt.Fprintf(w, `
The dispatcher is up. Try it as the kube-apiserver of cluster dev:

  curl --silent --cacert %[1]s/ca.crt --cert %[1]s/dev.crt --key %[1]s/dev.key \
    -H 'Content-Type: application/json' --data-binary @%[1]s/%[2]s \
    'https://%[3]s/v1/clusters/dev/validate?timeout=10s'

Look at it: %[4]s is its status page, and in a terminal

  dispatcher status --admin %[4]s

Edit a manifest in %[1]s/registry and try again: a change is picked up within 2 seconds.
The log is %[1]s/dispatcher.log. Interrupt to end; everything is removed then.
`, s.dir, sampleReview, address, statusPage)
}
