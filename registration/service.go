// SPDX-License-Identifier: Apache-2.0

package registration

import (
	"fmt"
	"strconv"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"
)

// Service is a Service in the cluster that leads to the dispatcher, such as that of
// dispatcher-forward.
type Service struct {
	Namespace, Name string
	Port            int32
}

// defaultServicePort is that of the Kubernetes API.
const defaultServicePort = 443

// ParseService reads NAMESPACE/NAME[:PORT].
func ParseService(text string) (*Service, error) {
	malformed := func(reason string) error {
		return fmt.Errorf("must be NAMESPACE/NAME[:PORT], not %q: %s", text, reason)
	}
	namespace, rest, ok := strings.Cut(text, "/")
	if !ok {
		return nil, malformed("there is no /")
	}
	name, port, hasPort := strings.Cut(rest, ":")
	s := &Service{Namespace: namespace, Name: name, Port: defaultServicePort}
	if reasons := validation.IsDNS1123Label(namespace); len(reasons) > 0 {
		return nil, malformed("the namespace: " + reasons[0])
	}
	if reasons := validation.IsDNS1035Label(name); len(reasons) > 0 {
		return nil, malformed("the name: " + reasons[0])
	}
	if hasPort {
		n, err := strconv.ParseInt(port, 10, 32)
		if err != nil || len(validation.IsValidPortNum(int(n))) > 0 {
			return nil, malformed("the port must be between 1 and 65535")
		}
		s.Port = int32(n)
	}
	return s, nil
}
