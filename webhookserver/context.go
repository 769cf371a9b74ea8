// SPDX-License-Identifier: Apache-2.0

package webhookserver

import (
	"context"
	"net/http"
	"time"
)

// contextOf returns the request's context with the cluster, and with the
// deadline that ?timeout= asks for.
func contextOf(r *http.Request) (context.Context, context.CancelFunc, error) {
	ctx := context.WithValue(r.Context(), clusterKey{}, r.Header.Get("Admission-Cluster"))
	text := r.URL.Query().Get("timeout")
	if text == "" {
		return ctx, func() {}, nil
	}
	timeout, err := time.ParseDuration(text)
	if err != nil || timeout <= 0 {
		return nil, nil, refusal(http.StatusBadRequest, "timeout=%q is not a positive duration such as 10s", text)
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	return ctx, cancel, nil
}

type clusterKey struct{}

// Cluster returns the name of the cluster that the request comes from, as the
// dispatcher says it in the header Admission-Cluster. It is empty if the caller
// sent none, as a kube-apiserver does. Trust it as far as you trust the caller:
// authenticate dispatchers by their client certificate or token.
func Cluster(ctx context.Context) string {
	name, _ := ctx.Value(clusterKey{}).(string)
	return name
}
