package componentstatus

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
)

// maxBody is how much of an answer is shown.
const maxBody = 10 << 10

// HTTPS is the check of a component that answers at a URL: 200 and what follows say that it is well.
// It sends no credentials, and does not check who answers, because components make their
// certificates themselves. The messages are kube-apiserver's.
func HTTPS(url string) Check {
	client := &http.Client{
		Timeout: timeout, CheckRedirect: stayOnHost,
		Transport: &http.Transport{ // without a proxy: it is on this machine
			TLSClientConfig:     &tls.Config{MinVersion: tls.VersionTLS12, InsecureSkipVerify: true}, //nolint:gosec // See above.
			TLSHandshakeTimeout: 10 * time.Second, DisableKeepAlives: true, DisableCompression: true,
		},
	}
	return func(ctx context.Context) corev1.ComponentCondition {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return condition(corev1.ConditionUnknown, "", fmt.Sprintf("failed to construct probe request: %v", err))
		}
		r.Header.Set("User-Agent", "kube-probe/1.37")
		r.Header.Set("Accept", "*/*")
		resp, err := client.Do(r)
		if err != nil {
			return condition(corev1.ConditionFalse, err.Error(), "")
		}
		defer resp.Body.Close()
		return judge(resp)
	}
}

// judge returns what an answer says of a component.
func judge(resp *http.Response) corev1.ComponentCondition {
	read, err := io.ReadAll(io.LimitReader(resp.Body, maxBody))
	if err != nil {
		return condition(corev1.ConditionUnknown, "", err.Error())
	}
	body := strings.ToValidUTF8(string(read), "\uFFFD") // it may have been cut within a character
	switch {
	case resp.StatusCode < http.StatusOK, resp.StatusCode >= http.StatusBadRequest:
		return condition(corev1.ConditionFalse, fmt.Sprintf("HTTP probe failed with statuscode: %d", resp.StatusCode), "")
	case resp.StatusCode >= http.StatusMultipleChoices:
		return condition(corev1.ConditionUnknown, "Probe terminated redirects, Response body: "+body, "")
	}
	return condition(corev1.ConditionTrue, body, "")
}

// stayOnHost follows redirects to the same host only: a component does not send the server
// to others.
func stayOnHost(r *http.Request, via []*http.Request) error {
	if r.URL.Hostname() != via[0].URL.Hostname() {
		return http.ErrUseLastResponse
	}
	if len(via) >= 10 {
		return errors.New("stopped after 10 redirects")
	}
	return nil
}
