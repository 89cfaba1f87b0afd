// Shows notifications, and opens the run of one that is clicked. It keeps no files: the page is always that of the server.

/// Shows what the server sends by the browser's push service.
self.addEventListener('push', (event) => {
  event.waitUntil((async () => {
    // A person who looks at the page sees it there. Safari takes the subscription of a page that does not show each message.
    const maySkip = /Chrome|Firefox/.test(navigator.userAgent);
    if (maySkip && (await windows()).some((one) => one.focused)) return;
    await show(event.data.json());
  })());
});

/// Gives the server the new subscription when the browser has replaced one. Without a login, the page does so once it is open.
self.addEventListener('pushsubscriptionchange', (event) => {
  event.waitUntil((async () => {
    const send = (method, path, body) => fetch(`v1/web-push${path}`, {method, body: body && JSON.stringify(body), headers: body ? {'Content-Type': 'application/json'} : {}, credentials: 'same-origin'});
    let made = event.newSubscription;
    if (!made) {
      const response = await send('GET', '');
      if (!response.ok) return;
      const {key} = await response.json();
      made = await self.registration.pushManager.subscribe({userVisibleOnly: true, applicationServerKey: key});
    }
    const {endpoint, keys} = made.toJSON();
    await send('POST', '/subscriptions', {endpoint, keys});
  })());
});

/// Shows what a page sends while it is open.
self.addEventListener('message', (event) => event.waitUntil(show(event.data)));

/// Of a run the newest notification is shown.
function show({runId, requestId, title, text}) {
  return self.registration.showNotification(title, {body: text, tag: runId, renotify: true, icon: 'page/icon-192.png', data: {runId, requestId}});
}

/// The windows with the page.
async function windows() {
  const all = await self.clients.matchAll({type: 'window', includeUncontrolled: true});
  return all.filter(({url}) => url.split(/[?#]/)[0] === self.registration.scope);
}

self.addEventListener('notificationclick', (event) => {
  event.notification.close();
  event.waitUntil((async () => {
    const hash = `#/run/${encodeURIComponent(event.notification.data.runId)}`;
    const [one] = await windows();
    if (!one) return self.clients.openWindow(self.registration.scope + hash);
    await one.focus();
    one.postMessage({open: hash});
  })());
});
